-- One row per weapon, platform and minute: all fields of a Tick (src/tick.ts), times as text, prices whole. Handing the same result in
-- twice changes nothing.
ALTER TABLE riven_bottom_tick RENAME TO riven_bottom_tick_before;
DROP INDEX riven_bottom_tick_trend;
CREATE TABLE riven_bottom_tick (
    ts TEXT,                -- '2026-01-09T10:00:00Z', UTC, to the minute
    platform TEXT,
    weapon_slug TEXT,
    bottom_price INTEGER,   -- the index; NULL: nobody was selling
    active_count INTEGER,
    min_price INTEGER,
    p5_price INTEGER,
    p10_price INTEGER,
    source_status TEXT,
    created_at TEXT,
    PRIMARY KEY (ts, platform, weapon_slug)
);
INSERT INTO riven_bottom_tick
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', ts / 1000, 'unixepoch'), platform, weapon_slug, CAST(round(bottom_price) AS INTEGER), active_count, min_price, p5_price, p10_price, 'ok',
    strftime('%Y-%m-%dT%H:%M:%SZ', created_at / 1000, 'unixepoch')
FROM riven_bottom_tick_before;
DROP TABLE riven_bottom_tick_before;
-- Trends of one weapon.
CREATE INDEX riven_bottom_tick_trend ON riven_bottom_tick (platform, weapon_slug, ts);

-- What could not be sampled, and why. It never becomes a tick.
ALTER TABLE riven_failure RENAME TO riven_failure_before;
DROP INDEX riven_failure_ts;
CREATE TABLE riven_failure (
    id INTEGER PRIMARY KEY,
    ts TEXT NOT NULL,
    platform TEXT NOT NULL,
    weapon_slug TEXT NOT NULL,
    reason TEXT NOT NULL
);
INSERT INTO riven_failure SELECT id, strftime('%Y-%m-%dT%H:%M:%SZ', ts / 1000, 'unixepoch'), platform, weapon_slug, reason FROM riven_failure_before;
DROP TABLE riven_failure_before;
CREATE INDEX riven_failure_ts ON riven_failure (ts);
