// The salt that addresses are hashed with. It is random, kept here, and a new one every day: what was hashed
// with an old one cannot be connected with anything any more, by us either.
import { DurableObject } from "cloudflare:workers";

export interface CurrentSalt {
  salt: string;
  until: number;
}

export class SaltDO extends DurableObject {
  async current(hours: number): Promise<CurrentSalt> {
    const known = this.ctx.storage.kv.get<CurrentSalt>("current");
    if (known && known.until > Date.now()) return known;
    const length = hours * 3_600_000;
    const fresh = { salt: crypto.randomUUID() + crypto.randomUUID(), until: Math.floor(Date.now() / length + 1) * length };
    this.ctx.storage.kv.put("current", fresh);
    return fresh;
  }
}
