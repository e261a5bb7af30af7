// Every function that C provides. One block per file of src/bindings/.
export interface Native {
  // console.c
  log(level: 0 | 1 | 2 | 3, text: string): void;
  wallTime(): number;
  monotonicTime(): number;
  randomFill(view: ArrayBufferView | ArrayBuffer): void;
  // timers.c
  timerStart(id: number, milliseconds: number, repeats: boolean, callback: () => void): void;
  timerStop(id: number): void;
  // encoding.c
  utf8Encode(text: string): Uint8Array;
  utf8Decode(bytes: ArrayBufferView | ArrayBuffer): string;
  utf8Valid(bytes: ArrayBufferView | ArrayBuffer): boolean;
  latin1Decode(bytes: ArrayBufferView | ArrayBuffer): string;
}
