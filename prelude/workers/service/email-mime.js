// Messages as they go over the wire (RFC 5322, 2045 to 2047): made of the fields that `send()` takes, and looked at when
// they come as they are.
//
// M1  No text of a script begins a line of a header: control characters in addresses, names, subjects and headers are refused.
// M2  A message is lines that end in CR LF, whatever it was made of: a CR or LF alone becomes both.
import { native } from "../../internal/native.js";
import { crypto } from "../../web/crypto/crypto.js";

export const MESSAGE_BYTES_MAX = 25 << 20;
const RECIPIENTS_MAX = 50;
const ATTACHMENTS_MAX = 32;
const SUBJECT_MAX = 998;
const HEADERS_MAX = 100;
const HEADERS_BYTES_MAX = 16 << 10;
const NAME_MAX = 100;
const VALUE_MAX = 2048;
const ADDRESS_MAX = 320;

export class EmailError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const isControl = (text) => /[\x00-\x08\x0a-\x1f\x7f]/.test(text);
const isAscii = (text) => /^[\x20-\x7e\t]*$/.test(text);

/** One mailbox: no quoted local parts, no literal hosts, nothing that could be two. */
export function checkAddress(address, what) {
  if (typeof address !== "string" || address.length > ADDRESS_MAX || !/^[^\s<>()[\]\\,;:@"\x00-\x20\x7f]+@[^\s<>()[\]\\,;:@"\x00-\x20\x7f]+$/.test(address)) {
    throw new EmailError("E_VALIDATION_ERROR", `${what}: ${JSON.stringify(String(address).slice(0, 100))} is not an email address`);
  }
  return address;
}

/** {email, name} of "a@b", "Name <a@b>" or such an object. */
function mailbox(value, what) {
  let email = value, name = "";
  if (value !== null && typeof value === "object") {
    ({ email, name = "" } = value);
  } else if (typeof value === "string") {
    const text = value.trim(), bracket = text.indexOf("<"), before = text.slice(0, bracket).trim();
    const match = /^(?:"([^"\\]*)"|([^<>"]*))$/.exec(before);
    if (bracket >= 0 && match !== null && /^<[^<>]*>$/.test(text.slice(bracket))) [email, name] = [text.slice(bracket + 1, -1).trim(), match[1] ?? match[2]];
    else email = text;
  }
  checkAddress(email, what);
  name = `${name ?? ""}`;
  if (isControl(name) || name.length > SUBJECT_MAX) throw new EmailError("E_VALIDATION_ERROR", `${what}: the name has characters that it cannot have, or is too long`);
  return { email, name };
}

function mailboxes(value, what) {
  if (value === undefined || value === null) return [];
  return (Array.isArray(value) ? value : [value]).map((each) => mailbox(each, what));
}

/** RFC 2047: words that fit a line with the name of a header, cut between characters. */
function encodedWords(text) {
  const words = [];
  let part = "", size = 0;
  const end = () => words.push(`=?utf-8?B?${native.base64Encode(native.latin1Slice(native.utf8Encode(part), 0, size))}?=`);
  for (const character of text) {
    const bytes = native.utf8Encode(character).length;
    if (size + bytes > 39) {
      end();
      part = "";
      size = 0;
    }
    part += character;
    size += bytes;
  }
  end();
  return words.join(" ");
}

const quoted = (name) => (isAscii(name) ? `"${name.replace(/[\\"]/g, "\\$&")}"` : encodedWords(name));
const shown = ({ email, name }) => (name === "" ? email : `${quoted(name)} <${email}>`);

/** A header with its lines folded at spaces. */
function header(name, value) {
  const words = `${name}: ${value}`.split(" ");
  let line = words[0], out = "";
  for (let i = 1; i < words.length; i++) {
    if (i > 1 && line.length + words[i].length > 76 && line.trim() !== "" && words[i] !== "") {
      out += `${line}\r\n`;
      line = ` ${words[i]}`;
    } else {
      line += ` ${words[i]}`;
    }
  }
  return `${out}${line}\r\n`;
}

const FIELDS = { __proto__: null, from: "from", to: "to", cc: "cc", bcc: "bcc", subject: "subject", "reply-to": "replyTo" };
const OWN = new Set(["date", "message-id", "mime-version", "content-type", "content-transfer-encoding", "content-disposition", "content-id", "dkim-signature", "return-path",
  "received", "feedback-id", "tls-required", "tls-report-domain", "tls-report-submitter", "cfbl-address", "cfbl-feedback-id", "sender", "resent-from", "resent-to"]);

function customHeaders(headers) {
  if (headers === undefined || headers === null) return "";
  if (typeof headers !== "object") throw new EmailError("E_VALIDATION_ERROR", "headers must be an object");
  const names = Object.keys(headers);
  if (names.length > HEADERS_MAX) throw new EmailError("E_HEADERS_TOO_MANY", `More than ${HEADERS_MAX} headers`);
  let out = "";
  for (const name of names) {
    const value = `${headers[name]}`;
    const lower = name.toLowerCase();
    if (name.length > NAME_MAX || !/^[!-9;-~]+$/.test(name)) throw new EmailError("E_HEADER_NAME_INVALID", `${JSON.stringify(name.slice(0, 100))} is not the name of a header`);
    if (FIELDS[lower] !== undefined) throw new EmailError("E_HEADER_USE_API_FIELD", `The header ${name} is the field ${FIELDS[lower]}`);
    if (OWN.has(lower) || lower.startsWith("arc-")) throw new EmailError("E_HEADER_NOT_ALLOWED", `The header ${name} is the server's own`);
    if (isControl(value)) throw new EmailError("E_HEADER_VALUE_INVALID", `The header ${name} has characters that it cannot have`);
    if (value.length > VALUE_MAX) throw new EmailError("E_HEADER_VALUE_TOO_LONG", `The header ${name} is longer than ${VALUE_MAX} characters`);
    out += header(name, isAscii(value) ? value : encodedWords(value));
  }
  if (out.length > HEADERS_BYTES_MAX) throw new EmailError("E_HEADERS_TOO_LARGE", `The headers have more than ${HEADERS_BYTES_MAX} bytes`);
  return out;
}

/** Bytes in lines of 76 characters of base64. */
function base64Lines(bytes) {
  const PIECE = 57 * 512;
  const lines = [];
  for (let at = 0; at < bytes.length; at += PIECE) {
    const text = native.base64Encode(native.latin1Slice(bytes, at, Math.min(bytes.length, at + PIECE)));
    for (let i = 0; i < text.length; i += 76) lines.push(text.slice(i, i + 76));
  }
  return `${lines.join("\r\n")}\r\n`;
}

const LINE_END = /\r\n|\r|\n/g;

function textPart(type, text) {
  const body = text.replace(LINE_END, "\r\n");
  const plain = /^[\x20-\x7e\t\r\n]*$/.test(body) && !/[^\n]{900}/.test(body);
  return plain
    ? `Content-Type: ${type}; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n${body}\r\n`
    : `Content-Type: ${type}; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n${base64Lines(native.utf8Encode(body))}`;
}

const FILE_TEXT = /^[^\x00-\x1f\x7f]{1,255}$/;

function attachmentPart(attachment, index) {
  const what = `attachments[${index}]`;
  if (attachment === null || typeof attachment !== "object") throw new EmailError("E_VALIDATION_ERROR", `${what} is not an object`);
  const { content, filename, type = "application/octet-stream", disposition = "attachment", contentId } = attachment;
  if (content === undefined || filename === undefined) throw new EmailError("E_FIELD_MISSING", `${what} needs content and filename`);
  if (typeof filename !== "string" || !FILE_TEXT.test(filename)) throw new EmailError("E_VALIDATION_ERROR", `${what}: filename is no name of a file`);
  if (typeof type !== "string" || !/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(;\s*[\w-]+=("[^"\\\r\n]*"|[\w!#$&^.+-]+))*$/.test(type) || type.length > 200) throw new EmailError("E_VALIDATION_ERROR", `${what}: type is no MIME type`);
  if (disposition !== "attachment" && disposition !== "inline") throw new EmailError("E_VALIDATION_ERROR", `${what}: disposition is "attachment" or "inline"`);
  let bytes;
  if (typeof content === "string") {
    const text = native.base64Decode(content);
    if (text === null) throw new EmailError("E_VALIDATION_ERROR", `${what}: content is not base64`);
    bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  } else if (content instanceof ArrayBuffer) {
    bytes = new Uint8Array(content);
  } else if (ArrayBuffer.isView(content)) {
    bytes = new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
  } else {
    throw new EmailError("E_VALIDATION_ERROR", `${what}: content is a base64 string, an ArrayBuffer or a view of one`);
  }
  const name = isAscii(filename) ? `filename="${filename.replace(/[\\"]/g, "\\$&")}"` : `filename*=utf-8''${encodeURIComponent(filename).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`)}`;
  let head = `Content-Type: ${type}\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: ${disposition};\r\n ${name}\r\n`;
  if (contentId !== undefined) {
    if (typeof contentId !== "string" || !/^[!-;=?-~]{1,200}$/.test(contentId)) throw new EmailError("E_VALIDATION_ERROR", `${what}: contentId has characters that it cannot have`);
    head += `Content-ID: <${contentId}>\r\n`;
  }
  return { inline: disposition === "inline" && contentId !== undefined, size: bytes.length, text: () => `${head}\r\n${base64Lines(bytes)}` };
}

const token = () => crypto.randomUUID().replaceAll("-", "");

function multipart(kind, parts) {
  if (parts.length === 1) return parts[0];
  const boundary = `=_cairn_${token()}`;
  return `Content-Type: multipart/${kind};\r\n boundary="${boundary}"\r\n\r\n${parts.map((part) => `--${boundary}\r\n${part}`).join("\r\n")}\r\n--${boundary}--\r\n`;
}

/**
 * The message of the fields that send() takes.
 * @returns {{from: string, to: string[], messageId: string, bytes: Uint8Array}}
 */
export function build(fields, destination) {
  for (const name of ["from", "subject"]) {
    if (fields[name] === undefined || fields[name] === null) throw new EmailError("E_FIELD_MISSING", `The field ${name} is missing`);
  }
  if (fields.text === undefined && fields.html === undefined) throw new EmailError("E_FIELD_MISSING", "One of the fields text and html is needed");
  const from = mailbox(fields.from, "from");
  const to = mailboxes(fields.to ?? destination, "to");
  if (to.length === 0) throw new EmailError("E_FIELD_MISSING", "The field to is missing");
  const cc = mailboxes(fields.cc, "cc");
  const bcc = mailboxes(fields.bcc, "bcc");
  const everyone = [...new Set([...to, ...cc, ...bcc].map(({ email }) => email))];
  if (to.length + cc.length + bcc.length > RECIPIENTS_MAX) throw new EmailError("E_TOO_MANY_RECIPIENTS", `More than ${RECIPIENTS_MAX} recipients`);
  const subject = `${fields.subject}`;
  if (isControl(subject) || subject.length > SUBJECT_MAX) throw new EmailError("E_VALIDATION_ERROR", `subject has more than one line, or more than ${SUBJECT_MAX} characters`);
  const given = fields.attachments ?? [];
  if (!Array.isArray(given)) throw new EmailError("E_VALIDATION_ERROR", "attachments must be an array");
  if (given.length > ATTACHMENTS_MAX) throw new EmailError("E_TOO_MANY_ATTACHMENTS", `More than ${ATTACHMENTS_MAX} attachments`);
  const attachments = given.map(attachmentPart);
  const texts = [fields.text, fields.html].map((text) => (text === undefined || text === null ? null : `${text}`));
  let size = 0;
  for (const each of attachments) size += Math.ceil(each.size / 3) * 4;
  for (const text of texts) size += text?.length ?? 0;
  if (size > MESSAGE_BYTES_MAX) throw tooLarge();

  const messageId = `<${token()}@${from.email.slice(from.email.lastIndexOf("@") + 1)}>`;
  let head = header("From", shown(from)) + header("To", to.map(shown).join(", "));
  if (cc.length > 0) head += header("Cc", cc.map(shown).join(", "));
  if (fields.replyTo !== undefined && fields.replyTo !== null) head += header("Reply-To", shown(mailbox(fields.replyTo, "replyTo")));
  head += header("Subject", isAscii(subject) ? subject : encodedWords(subject));
  head += `Date: ${new Date().toUTCString().replace("GMT", "+0000")}\r\nMessage-ID: ${messageId}\r\nMIME-Version: 1.0\r\n${customHeaders(fields.headers)}`;
  const bodies = [];
  if (texts[0] !== null) bodies.push(textPart("text/plain", texts[0]));
  if (texts[1] !== null) {
    const inline = attachments.filter((each) => each.inline);
    bodies.push(multipart("related", [textPart("text/html", texts[1]), ...inline.map((each) => each.text())]));
  }
  const rest = attachments.filter((each) => !each.inline || texts[1] === null);
  const body = multipart("mixed", [multipart("alternative", bodies), ...rest.map((each) => each.text())]);
  const bytes = native.utf8Encode(head + body); // addresses alone may be more than ASCII: RFC 6532
  if (bytes.length > MESSAGE_BYTES_MAX) throw tooLarge();
  return { from: from.email, to: everyone, messageId, bytes };
}

export const tooLarge = () => new EmailError("E_CONTENT_TOO_LARGE", `The message has more than ${MESSAGE_BYTES_MAX} bytes`);

/** The headers of a message that came as it is: [name in small letters, value]. */
function headersOf(bytes) {
  const HEAD_MAX = 256 << 10;
  const text = native.latin1Slice(bytes, 0, Math.min(bytes.length, HEAD_MAX)).replace(LINE_END, "\n");
  const end = text.indexOf("\n\n");
  const head = end < 0 ? text : text.slice(0, end);
  return head.replace(/\n[ \t]+/g, " ").split("\n").filter((line) => line !== "").map((line) => {
    const match = /^([!-9;-~]+)[ \t]*:(.*)$/.exec(line);
    if (match === null) throw new EmailError("E_VALIDATION_ERROR", `could not parse email: ${JSON.stringify(line.slice(0, 100))} is no header`);
    return [match[1].toLowerCase(), match[2].trim()];
  });
}

/** What the platform asks of a message that came as it is; returns its Message-ID. */
export function checkRaw(bytes, from) {
  const headers = headersOf(bytes);
  const all = (name) => headers.filter((each) => each[0] === name).map((each) => each[1]);
  const [id] = all("message-id");
  if (id === undefined || !/^<[!-~]+>$/.test(id)) throw new EmailError("E_VALIDATION_ERROR", "invalid message-id");
  const senders = all("from");
  const match = senders.length === 1 ? /<([^<>]*)>\s*$/.exec(senders[0]) : null;
  const sender = match === null ? senders[0] : match[1].trim();
  if (senders.length !== 1 || sender !== native.latin1Slice(native.utf8Encode(from), 0, native.utf8Encode(from).length)) {
    throw new EmailError("E_VALIDATION_ERROR", "From: header does not match mail from");
  }
  if (all("received").length > 0) throw new EmailError("E_VALIDATION_ERROR", "invalid headers set");
  return id;
}
