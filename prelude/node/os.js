// node:os: a machine that tells nothing about itself.
import { Buffer } from "./buffer.js";
import { invalidArgValue, validateNumber, readOptions } from "./internal/errors.js";
import data from "./data/os-constants.json";

const bare = (object) => Object.assign(Object.create(null), object);
const constants = bare({ UV_UDP_REUSEADDR: data.UV_UDP_REUSEADDR });
for (const name of ["dlopen", "errno", "signals", "priority"]) constants[name] = Object.freeze(bare(data[name]));

export default {
  EOL: "\n",
  devNull: "/dev/null",
  constants: Object.freeze(constants),
  availableParallelism: () => 1,
  arch: () => "x64",
  cpus: () => [],
  endianness: () => "LE",
  freemem: () => 0,
  getPriority(pid = 0) {
    validateNumber(pid, "pid");
    return 0;
  },
  homedir: () => "/tmp/",
  hostname: () => "localhost",
  loadavg: () => [0, 0, 0],
  machine: () => "x86_64",
  networkInterfaces: () => ({}),
  platform: () => "linux",
  release: () => "",
  setPriority(pid, priority) {
    validateNumber(pid, "pid");
    validateNumber(priority, "priority");
  },
  tmpdir: () => "/tmp/",
  totalmem: () => 0,
  type: () => "Linux",
  uptime: () => 0,
  userInfo(options = {}) {
    readOptions(options, {
      encoding: [null, (encoding, name) => {
        const known = encoding === null || encoding === "buffer" || Buffer.isEncoding(encoding);
        if (!known) throw invalidArgValue(name, encoding, "must be a valid encoding");
      }],
    });
    return {};
  },
  version: () => "",
};
