const secret = [
  [/[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{20,}/g, "<jwt>"],
  [/(session_token=)[^;]+/g, "$1<token>"],
  [/\b[A-Za-z0-9]{32}(\.[A-Za-z0-9%/+]+)?/g, "<token>"],
  [/"(x|kid)":"[^"]+"/g, '"$1":"…"'],
];
export default {
  title: "better-auth on D1",
  does: "tables, sign-up, sign-in, sessions by cookie and bearer token, JWT, key set, new password, sign-out, forgeries refused",
  packages: { "better-auth": "1.7.5", kysely: "0.28.18", "kysely-d1": "0.4.0" },
  normalise: secret,
  async script(t) {
    const origin = { origin: t.url }, jar = t.jar();
    await t.get("/setup");
    const ada = { name: "Ada", email: "ada@example.com", password: "correct horse" };
    t.check((await t.post("/api/auth/sign-up/email", ada, { headers: origin, jar })).status === 200, "signed up");
    t.check((await t.get("/", { jar })).json().hello === "Ada", "known by the cookie");
    t.check((await t.get("/")).status === 401, "unknown without");
    await t.post("/api/auth/sign-up/email", ada, { headers: origin });
    t.check((await t.post("/api/auth/sign-in/email", { ...ada, password: "wrong horse" }, { headers: origin })).status === 401, "a wrong password");
    const other = t.jar();
    const signedIn = await t.post("/api/auth/sign-in/email", ada, { headers: origin, jar: other });
    t.check(signedIn.status === 200, "signed in");
    const bearer = { authorization: `Bearer ${signedIn.headers["set-auth-token"] ?? signedIn.json().token}` };
    t.check((await t.get("/", { headers: bearer })).status === 200, "known by the token");
    await t.get("/", { headers: { authorization: "Bearer nonsense" } });
    await t.get("/", { headers: { cookie: "better-auth.session_token=forged.signature" } });
    await t.get("/api/auth/get-session", { jar: other });
    t.check((await t.get("/api/auth/list-sessions", { jar: other })).json().length === 2, "two sessions");
    t.check((await t.get("/api/auth/token", { jar: other })).json().token.split(".").length === 3, "a JWT");
    t.check((await t.get("/api/auth/jwks")).json().keys.length === 1, "its keys");
    await t.post("/api/auth/change-password", { currentPassword: ada.password, newPassword: "battery staple", revokeOtherSessions: true }, { headers: origin, jar: other });
    t.check((await t.get("/", { jar })).status === 401, "the other session is over");
    await t.post("/api/auth/sign-out", {}, { headers: origin, jar: other });
    t.check((await t.get("/", { jar: other })).status === 401, "signed out");
    await t.post("/api/auth/sign-in/email", ada, { headers: { origin: "https://evil.example" } });
  },
};
