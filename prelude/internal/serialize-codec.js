// serialize() and deserialize(), the part of serialize.js that is evaluated when it is first used.
import { dataError, Reader } from "./serialize-reader.js";
import { VERSION } from "./serialize-format.js";
import { Writer } from "./serialize-writer.js";

let spareWriter = new Writer();
let spareReader = new Reader();

export function serialize(value, context = null) {
  // A getter may serialize something else meanwhile: that one gets a writer of its own.
  const writer = spareWriter ?? new Writer();
  spareWriter = null;
  try {
    writer.begin(context);
    writer.byte(VERSION);
    writer.value(value);
    return writer.bytes.slice(0, writer.at);
  } finally {
    writer.end();
    spareWriter = writer;
  }
}

export function deserialize(bytes, context = null) {
  const reader = spareReader ?? new Reader();
  spareReader = null;
  try {
    reader.begin(bytes, context);
    const value = reader.value();
    if (reader.at !== reader.end) throw dataError("bytes are left at its end");
    return value;
  } finally {
    reader.finish();
    spareReader = reader;
  }
}
