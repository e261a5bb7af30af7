// The current directory, for node:fs and node:process.
let current = "/bundle";
export const getCwd = () => current;
export const setCwd = (path) => {
  current = path;
};
