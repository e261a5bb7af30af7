// From a list of listings to one tick.

export interface Listing {
  price: number;
  /** The seller is online or in the game: the offer can be taken now. */
  active: boolean;
}

export interface Tick {
  /** When it was sampled, to the minute: "2026-01-09T10:00:00Z". */
  ts: string;
  platform: string;
  weapon_slug: string;
  /** The weighted index of the bottom; null, like the other prices, if nobody was selling. */
  bottom_price: number | null;
  active_count: number;
  min_price: number | null;
  p5_price: number | null;
  p10_price: number | null;
  source_status: "ok";
  /** When it was written down. */
  created_at: string;
}

const CHEAPEST = 10;
const WEIGHT_STEP = 0.8;
const BAIT_SHARE = 0.25;

/** A time as ticks have it: no milliseconds. */
export const isoTime = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");

/**
 * What a buyer pays at the bottom of the market: the weighted mean of the ten cheapest active listings, the
 * cheapest counting most (weights 1, 0.8, 0.64, ...), in whole platinum. Listings below a quarter of the median of those ten are left
 * out: offers at that price are bait or mistakes and move an index that nobody can buy at.
 */
export function bottomPrice(sorted: number[]): number | null {
  const cheapest = sorted.slice(0, CHEAPEST);
  if (cheapest.length === 0) return null;
  const median = (cheapest[(cheapest.length - 1) >> 1] + cheapest[cheapest.length >> 1]) / 2;
  let sum = 0, weights = 0, weight = 1;
  for (const price of cheapest) {
    if (price < median * BAIT_SHARE) continue;
    sum += price * weight;
    weights += weight;
    weight *= WEIGHT_STEP;
  }
  return Math.round(sum / weights);
}

export function makeTick(listings: Listing[], platform: string, slug: string, now: number, tickSeconds: number): Tick {
  const sorted = listings.filter((listing) => listing.active).map((listing) => listing.price).sort((a, b) => a - b);
  const step = tickSeconds * 1000;
  return {
    ts: isoTime(Math.floor(now / step) * step),
    platform,
    weapon_slug: slug,
    bottom_price: bottomPrice(sorted),
    active_count: sorted.length,
    min_price: sorted[0] ?? null,
    p5_price: sorted[4] ?? null,
    p10_price: sorted[9] ?? null,
    source_status: "ok",
    created_at: isoTime(now),
  };
}
