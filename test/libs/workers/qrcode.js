// qrcode: a symbol as SVG, as characters, and its bits.
import QRCode from "qrcode";

export default {
  async fetch(request) {
    const text = new URL(request.url).searchParams.get("text");
    const symbol = QRCode.create(text, { errorCorrectionLevel: "Q" });
    const svg = await QRCode.toString(text, { type: "svg", errorCorrectionLevel: "Q" });
    return Response.json({
      version: symbol.version, mask: symbol.maskPattern, size: symbol.modules.size,
      bits: Array.from({ length: symbol.modules.size }, (_, y) =>
        Array.from({ length: symbol.modules.size }, (_, x) => symbol.modules.get(y, x) ? 1 : 0).join("")),
      svg: svg.startsWith("<svg ") && svg.includes(`viewBox="0 0 ${symbol.modules.size + 8} `),
    });
  },
};
