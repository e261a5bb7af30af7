// What an error is, beside its text: known of those that the platform has made, by a private field that scripts neither read nor set.
//
// F1  Nobody tells what an error is by its text, or by a property: a script can write both.
let told, note;

class Noted extends class { constructor(error) { return error; } } {
  #faults;
  #text;
  constructor(error, faults, text) {
    super(error);
    this.#faults = faults;
    this.#text = text;
  }
  static {
    note = (error, faults, text) => {
      const marks = error !== null && typeof error === "object" && !(#faults in error); // anything can be thrown
      if (marks) new Noted(error, faults, text);
      return error;
    };
    told = (error) => (error !== null && typeof error === "object" && #faults in error ? [error.#faults, error.#text] : [0, ""]);
  }
}

/** The error stands for a failure that C has told: bits of Fault, and its sentence. */
export const noteFault = (error, faults, text) => note(error, faults, text);
/** @returns {[number, string]} as noted; 0: it is somebody's own */
export const faultOf = (error) => told(error);
