// The judge of a chat (examples/chat-room) whose servers are hurt meanwhile. It is told what members send and hear, and reads the rooms in the end.
//
// A message says who sent it, where, and as which of theirs: "ROOM.NUMBER.COUNT". It is *acknowledged* when its sender hears it from the room.
//
// R1  What was acknowledged, and what anybody has heard, is in the room's history, under its number, for good.
// R2  A number is of one message; a message has one number, and is said once.
// R3  Who is connected hears the room's messages in order, each, none twice: numbers follow each other, beginning behind those it was given first.
// R4  Whoever joins is given the last hundred: all that were acknowledged before it asked are among them, or older.
// R5  Nothing of one room is heard in another, neither words nor names.
// R6  Nothing is heard that nobody has said.
export const GIVEN = 100, KEPT = 1000; // examples/chat-room/src/room.ts: HISTORY, and what of it is kept

const EXAMPLES = 5; // told of each kind

class Room {
  numbers = new Map(); // of messages: what anybody heard
  texts = new Map(); // the other way round
  acknowledged = []; // numbers, in the order in which that was so
  said = new Map(); // by member: how many it has sent
  constructor(name) {
    this.name = name;
  }
}

/** What one connection of a member hears. */
class Ear {
  #last = -1; // the number it heard last; -1: it has not been given the history
  constructor(judge, room, member) {
    Object.assign(this, { judge, room, member, known: room.acknowledged.length });
  }

  /** A message from the room: whatever it has sent. Returns what it was. */
  hear(data) {
    const value = JSON.parse(data);
    if (value.type === "init") this.#given(value.state.messages);
    else if (value.type === "message") this.#next(value);
    else if (value.type === "here") {
      for (const name of value.names) if (!name.startsWith(`${this.room.name}.`)) this.judge.wrong("R5", `${name} is said to be in ${this.room.name}`);
    } else this.judge.wrong("R6", `${this.member} hears ${data.slice(0, 200)}`);
    return value;
  }

  #given(messages) {
    if (this.#last >= 0) this.judge.wrong("R3", `${this.member} is given the history twice`);
    let before = 0;
    for (const message of messages) {
      if (message.id <= before) this.judge.wrong("R3", `${this.member} is given ${message.id} behind ${before}`);
      before = message.id;
      this.judge.heard(this.room, message);
    }
    this.#last = before;
    const least = messages.length < GIVEN ? 0 : messages[0].id, given = new Set(messages.map(({ id }) => id));
    for (const id of this.room.acknowledged.slice(Math.max(0, this.known - 2 * GIVEN), this.known))
      if (id >= least && !given.has(id)) this.judge.wrong("R4", `${this.member} is not given ${id} of ${this.room.name}, "${this.room.numbers.get(id)}", which was acknowledged before it came; it got ${messages[0]?.id} to ${before}`);
  }

  #next(message) {
    if (this.#last < 0) this.judge.wrong("R3", `${this.member} hears ${message.id} before the history`);
    else if (message.id !== this.#last + 1) this.judge.wrong("R3", `${this.member} hears ${message.id} of ${this.room.name} behind ${this.#last}`);
    this.#last = message.id;
    this.judge.heard(this.room, message);
  }
}

export class Judge {
  rooms = new Map();
  wrongs = new Map(); // by rule: how many
  examples = [];

  wrong(rule, text) {
    const count = (this.wrongs.get(rule) ?? 0) + 1;
    this.wrongs.set(rule, count);
    if (count <= EXAMPLES) this.examples.push(`${rule}: ${text}`);
  }

  get count() {
    return [...this.wrongs.values()].reduce((sum, count) => sum + count, 0);
  }

  room(name) {
    if (!this.rooms.has(name)) this.rooms.set(name, new Room(name));
    return this.rooms.get(name);
  }

  /** A member asks to join. */
  join(room, member) {
    return new Ear(this, this.room(room), member);
  }

  /** What it says next. */
  say(room, member) {
    const { said } = this.room(room), count = (said.get(member) ?? 0) + 1;
    said.set(member, count);
    return `${member}.${count}`;
  }

  /** Its sender has heard it. */
  acknowledge(room, text) {
    const there = this.room(room);
    there.acknowledged.push(there.texts.get(text));
  }

  heard(room, { id, name, text }) {
    const known = room.numbers.get(id);
    if (known === text) return;
    if (known !== undefined) this.wrong("R2", `${id} of ${room.name} was "${known}" and is "${text}"`);
    else if (room.texts.has(text)) this.wrong("R2", `"${text}" of ${room.name} is ${room.texts.get(text)} and ${id}`);
    const dot = text.lastIndexOf("."), sender = text.slice(0, dot);
    if (!text.startsWith(`${room.name}.`) || !name.startsWith(`${room.name}.`)) this.wrong("R5", `"${text}" by ${name} is in ${room.name}`);
    else if (sender !== name || !(Number(text.slice(dot + 1)) <= (room.said.get(sender) ?? 0))) this.wrong("R6", `"${text}" by ${name} is in ${room.name}`);
    room.numbers.set(id, text);
    room.texts.set(text, id);
  }

  /** The room's history as it is in the end: {id, name, text} each. Returns how many nobody had heard. */
  read(name, rows) {
    const room = this.room(name), there = new Map(rows.map((row) => [row.id, row.text])), newest = rows.reduce((most, { id }) => Math.max(most, id), 0);
    const isAcknowledged = new Set(room.acknowledged);
    for (const [id, text] of room.numbers) {
      if (id <= newest - KEPT || there.get(id) === text) continue; // the room itself lets old ones go
      this.wrong("R1", `${id} of ${name}, "${text}", ${isAcknowledged.has(id) ? "acknowledged" : "heard, not by its sender"}: there is ${JSON.stringify(there.get(id) ?? null)}, the newest is ${newest}`);
    }
    const before = room.numbers.size;
    for (const row of rows) this.heard(room, row);
    return room.numbers.size - before;
  }
}
