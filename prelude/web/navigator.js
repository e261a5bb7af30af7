// navigator: https://html.spec.whatwg.org/#the-navigator-object, the part that the platform has.
import { isFlagOff } from "../internal/native.js";
import { finishInterface } from "../internal/interface.js";
import { illegalConstructor, illegalInvocation, isObject, toUSVString } from "../internal/webidl.js";

const INTERNAL = Symbol("internal");
let isNavigator;
let send;

export class Navigator {
  #brand = true;
  constructor(token) {
    if (token !== INTERNAL) throw illegalConstructor();
  }
  static {
    isNavigator = (value) => isObject(value) && #brand in value;
  }
  get userAgent() {
    if (!isNavigator(this)) throw illegalInvocation();
    return "Cloudflare-Workers";
  }
  get hardwareConcurrency() {
    if (!isNavigator(this)) throw illegalInvocation();
    return 1;
  }
  get language() {
    if (!isNavigator(this)) throw illegalInvocation();
    return "en";
  }
  get languages() {
    if (!isNavigator(this)) throw illegalInvocation();
    return ["en"];
  }
  get platform() {
    if (!isNavigator(this)) throw illegalInvocation();
    return "";
  }
  sendBeacon(url, body = undefined) {
    if (!isNavigator(this)) throw illegalInvocation();
    send(toUSVString(url), body);
    return true;
  }
}
finishInterface(Navigator);
if (isFlagOff("enable_navigator_language")) for (const name of ["language", "languages"]) delete Navigator.prototype[name];
Object.defineProperty(Navigator, "length", { value: 0, configurable: true });

export const navigator = new Navigator(INTERNAL);
/** fetch.js gives what sendBeacon() does. */
export function setBeacon(function_) {
  send = function_;
}
