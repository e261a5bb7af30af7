// node:https
import { makeModule } from "./http.js";
export default makeModule("https:", 443);
