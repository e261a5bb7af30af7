// Tells WebSocket objects from others without importing their class: Response needs only that.
let check = () => false;

export function isWebSocket(value) {
  return check(value);
}

/** Called by the file that defines WebSocket. */
export function setWebSocketCheck(function_) {
  check = function_;
}
