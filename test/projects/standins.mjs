// Servers that stand in for what projects talk to: each keeps what it was asked. A project's `standIn` is
// a function (request, body) that answers {status, headers, body}; its address is the variable that
// `standInVar` names.
import http from "node:http";

export async function startStandIns() {
  let current = null, requests = [];
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part)).on("end", () => {
      const asked = { method: request.method, path: request.url, headers: request.headers, body: Buffer.concat(parts) };
      requests.push(asked);
      const { status = 200, headers = {}, body = "" } = current?.standIn?.(asked, requests) ?? { status: 404 };
      response.writeHead(status, headers).end(body);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  return {
    url,
    /** What a project's variables are, with no request seen yet. */
    vars(project) {
      current = project;
      requests = [];
      return { ...project.vars, ...(project.standInVar && { [project.standInVar]: project.standInUrl?.(url) ?? url }) };
    },
    get requests() {
      return requests;
    },
    close: () => (server.closeAllConnections(), server.close()),
  };
}
