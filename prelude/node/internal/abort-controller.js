// readable-stream asks a package for these; they are the platform's own.
module.exports = { AbortController: globalThis.AbortController, AbortSignal: globalThis.AbortSignal };
