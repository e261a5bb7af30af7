const mail = [
  "From: =?utf-8?Q?J=C3=BCrgen?= <j@example.com>", "To: Group: a@example.com, \"B, C\" <b@example.com>;", "Cc: c@example.com", "Subject: =?ISO-8859-1?B?R3L832U=?= and =?utf-8?B?4pyT?=",
  "Message-ID: <one@example.com>", "Date: Fri, 2 Jan 2026 03:04:05 +0200", "MIME-Version: 1.0", 'Content-Type: multipart/mixed; boundary="outer"', "", "--outer",
  'Content-Type: multipart/alternative; boundary="inner"', "", "--inner", "Content-Type: text/plain; charset=iso-8859-1", "Content-Transfer-Encoding: quoted-printable", "", "Gr=FC=DFe =\r\nund mehr",
  "--inner", "Content-Type: text/html; charset=utf-8", "", "<b>Grüße</b>", "--inner--", "--outer", 'Content-Type: text/csv; name="t.csv"', "Content-Disposition: attachment; filename*=utf-8''t%C3%A4.csv",
  "Content-Transfer-Encoding: base64", "", "YSxiCjEsMgo=", "--outer--", "",
].join("\r\n");
export default {
  title: "postal-mime and mimetext",
  does: "a message with charsets, groups, alternatives and attachments read from a stream; one written, kept in R2 and read again",
  packages: { "postal-mime": "2.7.4", mimetext: "3.0.28" },
  async script(t) {
    const read = (await t.request("/", { method: "POST", body: mail })).json();
    t.check(read.subject === "Grüße and ✓" && read.attachments[0][0] === "tä.csv", "a message", read);
    t.check((await t.get("/last")).status === 404, "nothing yet");
    t.check((await t.post("/write", { from: "ada@example.com", to: "bob@example.com", subject: "Tea ☕?", text: "At four.", html: "<p>At four.</p>" })).text === "true", "one is written");
    t.check((await t.get("/last", { quiet: true })).json().attachments[0][3] === "attached", "and read");
  },
};
