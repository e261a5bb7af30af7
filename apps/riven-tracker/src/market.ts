// The market's API: what is for sale of one weapon. Everything that comes from there is checked.
import type { Env } from "./env";
import type { Listing } from "./tick";

const BACKOFF_MS = 500;
const BACKOFF_MOST_MS = 5_000;
const LISTINGS_MOST = 500;

/** Why a weapon could not be sampled, in a few words that are kept. */
export class MarketError extends Error {
  constructor(message: string, readonly retryAfterMs: number | null = null, readonly final = false) {
    super(message);
  }
}

interface Auction {
  buyout_price?: unknown;
  closed?: unknown;
  visible?: unknown;
  private?: unknown;
  platform?: unknown;
  owner?: { status?: unknown };
}

/** A listing that can be bought at a price, or null. Auctions without a buyout price have none. */
function listingOf(auction: Auction, platform: string): Listing | null {
  if (auction === null || typeof auction !== "object") return null;
  const price = auction.buyout_price;
  if (typeof price !== "number" || !Number.isInteger(price) || price <= 0) return null;
  if (auction.closed === true || auction.visible === false || auction.private === true) return null;
  if (auction.platform !== undefined && auction.platform !== platform) return null;
  const status = auction.owner?.status;
  return { price, active: status === "ingame" || status === "online" };
}

export function parseListings(document: unknown, platform: string): Listing[] {
  const auctions = (document as { payload?: { auctions?: unknown } } | null)?.payload?.auctions;
  if (!Array.isArray(auctions)) throw new MarketError("the answer has no list of auctions");
  return auctions.slice(0, LISTINGS_MOST).map((auction) => listingOf(auction, platform)).filter((listing) => listing !== null);
}

function retryAfter(response: Response): number | null {
  const seconds = Number(response.headers.get("retry-after"));
  return seconds > 0 ? Math.min(seconds * 1000, BACKOFF_MOST_MS) : null;
}

export interface Answer {
  listings: Listing[];
  /** market/server.mjs says of itself that it is none. */
  standIn: boolean;
}

async function ask(slug: string, env: Env): Promise<Answer> {
  const url = `${env.MARKET_URL}/auctions/search?type=riven&weapon_url_name=${encodeURIComponent(slug)}&sort_by=price_asc&buyout_policy=direct`;
  let response: Response;
  try {
    response = await fetch(url, { headers: { accept: "application/json", platform: env.PLATFORM }, signal: AbortSignal.timeout(env.MARKET_TIMEOUT_MS) });
  } catch (error) {
    throw new MarketError((error as Error).name === "TimeoutError" ? "timed out" : "not reached");
  }
  if (response.status === 429 || response.status >= 500) {
    await response.body?.cancel();
    throw new MarketError(`status ${response.status}`, retryAfter(response));
  }
  if (!response.ok) {
    await response.body?.cancel();
    throw new MarketError(`status ${response.status}`, null, true);
  }
  let document: unknown;
  try {
    document = await response.json();
  } catch {
    throw new MarketError("the answer is no JSON");
  }
  return { listings: parseListings(document, env.PLATFORM), standIn: response.headers.get("x-stand-in") === "true" };
}

/** Tries again with growing pauses where that may help: 429, 5xx, time-outs, broken answers. */
export async function listingsOf(slug: string, env: Env): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask(slug, env);
    } catch (error) {
      if (!(error instanceof MarketError) || error.final || attempt >= env.MARKET_TRIES) throw error;
      const backoff = Math.min(BACKOFF_MOST_MS, BACKOFF_MS * 2 ** (attempt - 1));
      await scheduler.wait(error.retryAfterMs ?? backoff * (0.5 + Math.random() / 2));
    }
  }
}
