-- One row per weapon, platform and minute. Handing the same result in twice changes nothing.
CREATE TABLE riven_bottom_tick (
  ts            INTEGER NOT NULL,  -- milliseconds since 1970, UTC, rounded down to the minute
  platform      TEXT    NOT NULL,
  weapon_slug   TEXT    NOT NULL,
  bottom_price  REAL,              -- NULL: nobody was selling
  active_count  INTEGER NOT NULL,
  min_price     INTEGER,
  p5_price      INTEGER,
  p10_price     INTEGER,
  source_status TEXT    NOT NULL,
  created_at    INTEGER NOT NULL,
  PRIMARY KEY (ts, platform, weapon_slug)
) WITHOUT ROWID;

-- Trends of one weapon.
CREATE INDEX riven_bottom_tick_trend ON riven_bottom_tick (platform, weapon_slug, ts);

-- What could not be sampled, and why. It never becomes a tick.
CREATE TABLE riven_failure (
  id          INTEGER PRIMARY KEY,
  ts          INTEGER NOT NULL,
  platform    TEXT    NOT NULL,
  weapon_slug TEXT    NOT NULL,
  reason      TEXT    NOT NULL
);
CREATE INDEX riven_failure_ts ON riven_failure (ts);
