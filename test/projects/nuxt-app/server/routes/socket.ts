export default defineWebSocketHandler({
  open(peer) {
    peer.send("welcome");
  },
  message(peer, message) {
    peer.send(`heard ${message.text()}`);
  },
});
