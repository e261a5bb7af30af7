// jose: tokens of four algorithms, a key set, an encrypted token, refusals.
import * as jose from "jose";

const algorithms = ["HS256", "RS256", "ES256", "EdDSA"];

async function signAndVerify(alg) {
  const keys = alg === "HS256"
    ? { privateKey: crypto.getRandomValues(new Uint8Array(32)) }
    : await jose.generateKeyPair(alg, { extractable: true });
  const token = await new jose.SignJWT({ role: "editor" }).setProtectedHeader({ alg, kid: "1" }).setSubject("ann")
    .setIssuer("cairn").setIssuedAt().setExpirationTime("2h").sign(keys.privateKey);
  const verifier = keys.publicKey
    ? jose.createLocalJWKSet({ keys: [{ ...(await jose.exportJWK(keys.publicKey)), kid: "1", alg }] })
    : keys.privateKey;
  const { payload } = await jose.jwtVerify(token, verifier, { issuer: "cairn" });
  const [head, body, signature] = token.split(".");
  const forged = `${head}.${jose.base64url.encode(JSON.stringify({ ...payload, sub: "eve" }))}.${signature}`;
  const refused = await jose.jwtVerify(forged, verifier).then(() => "accepted", (error) => error.code);
  return { sub: payload.sub, role: payload.role, refused };
}

export default {
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/sign") return Response.json(Object.fromEntries(await Promise.all(algorithms.map(async (alg) => [alg, await signAndVerify(alg)]))));
    if (pathname === "/verify") {
      // The example of RFC 7515, appendix A.1.
      const key = jose.base64url.decode("AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow");
      const { payload } = await jose.compactVerify(await request.text(), key);
      return new Response(payload);
    }
    const secret = new TextEncoder().encode("correct horse battery staple");
    const jwe = await new jose.CompactEncrypt(new TextEncoder().encode("for your eyes"))
      .setProtectedHeader({ alg: "PBES2-HS256+A128KW", enc: "A256GCM" }).encrypt(secret);
    const { plaintext } = await jose.compactDecrypt(jwe, secret, { keyManagementAlgorithms: ["PBES2-HS256+A128KW"] });
    return new Response(plaintext);
  },
};
