// Express on node:http: routes, a JSON body, a router, an error handler, a streamed answer.
import express from "express";
import { httpServerHandler } from "cloudflare:node";

const app = express();
app.disable("x-powered-by");
app.use(express.json());
const api = express.Router();
api.get("/users/:id", (request, response) => response.json({ id: request.params.id, verbose: request.query.verbose === "1" }));
api.post("/users", (request, response) => response.status(201).location("/api/users/7").json({ made: request.body.name }));
app.use("/api", api);
app.get("/old", (request, response) => response.redirect("/api/users/1"));
app.get("/stream", async (request, response) => {
  response.type("text/plain");
  for (const word of ["one", "two", "three"]) {
    response.write(`${word}\n`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  response.end();
});
app.get("/fail", async () => {
  throw new Error("on purpose");
});
app.use((error, request, response, next) => response.status(500).send(`caught: ${error.message}`));
app.listen(8080);
export default httpServerHandler({ port: 8080 });
