// Fills the shop by its own requests, so that every view of the dashboard has something to show.
import zlib from "node:zlib";

const products = ["tent", "stove", "rope", "lamp", "map", "boots", "compass", "flask"];

/** A picture of one colour, as PNG. */
function png(width, height, [red, green, blue]) {
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const out = Buffer.alloc(body.length + 8);
    out.writeUInt32BE(data.length);
    body.copy(out, 4);
    out.writeUInt32BE(crc(body), body.length + 4);
    return out;
  };
  const crc = (bytes) => {
    let value = -1;
    for (const byte of bytes) { value ^= byte; for (let k = 0; k < 8; k++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0); }
    return ~value >>> 0;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, Buffer.from([red, green, blue]))]);
  return Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), chunk("IHDR", head), chunk("IDAT", zlib.deflateSync(Buffer.concat(Array(height).fill(row)))), chunk("IEND", Buffer.alloc(0))]);
}

/** `request(path, init)` makes a request to the shop. */
export async function fill(request, { carts = 12 } = {}) {
  const post = async (path, body, headers) => {
    const response = await request(path, { method: "POST", body: typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body), headers });
    if (response.status >= 400) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    await response.arrayBuffer();
  };
  for (let i = 0; i < carts; i++)
    for (let k = 0; k <= i % 4; k++) await post(`/cart/cart-${String(i).padStart(4, "0")}/add`, [products[(i + k) % products.length], 1 + (k % 3), 9.5 * (k + 1)]);
  for (const product of products) await post("/cart/alice@example.com/add", [product, 2, 12.25]);
  await post("/cart/alice@example.com/customer", ["Alice"]);
  await post("/cart/alice@example.com/remind", [3_600_000]);
  await post("/sql", "CREATE TABLE product(id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, stock INTEGER)");
  for (const [i, name] of products.entries()) await post("/sql", `INSERT INTO product(name, price, stock) VALUES('${name}', ${(i + 1) * 7.5}, ${i * 3})`);
  for (let i = 0; i < 8; i++) await post(`/sessions/session-${1000 + i}`, JSON.stringify({ user: `user-${i}`, cart: `cart-${String(i).padStart(4, "0")}` }));
  for (const [i, product] of products.slice(0, 5).entries()) await post(`/images/products/${product}.png`, png(64, 48, [40 * i, 120, 200 - 30 * i]), { "content-type": "image/png" });
  await post("/images/readme.txt", "Pictures of what the shop sells.\n", { "content-type": "text/plain" });
  for (let i = 0; i < 3; i++) await post("/orders", { order: i, cart: `cart-${String(i).padStart(4, "0")}` });
  await post("/orders", { order: 99, broken: true });
}
