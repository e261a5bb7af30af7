-- Every recorded request, for a few days.
CREATE TABLE traffic_events (
  id TEXT PRIMARY KEY,
  path TEXT NOT NULL,
  method TEXT,
  status INTEGER,
  response_time REAL,
  client_ip_hash TEXT,      -- hash(clientIP + salt)
  timestamp INTEGER,
  event_date TEXT,          -- YYYY-MM-DD
  user_agent TEXT,
  country TEXT
);
CREATE INDEX idx_events_date ON traffic_events(event_date);
CREATE INDEX idx_events_path_date ON traffic_events(path, event_date);

-- One row per path and hour. The sketches merge.
CREATE TABLE path_stats_hourly (
  path TEXT NOT NULL,
  hour_bucket TEXT NOT NULL, -- '2025-10-08T14', UTC
  requests INTEGER NOT NULL DEFAULT 0,
  errors INTEGER NOT NULL DEFAULT 0,
  sum_response_time REAL NOT NULL DEFAULT 0,
  count_response_time INTEGER NOT NULL DEFAULT 0,
  tdigest BLOB,              -- of response times, for percentiles
  hll_ip BLOB,               -- HyperLogLog of hashed addresses
  PRIMARY KEY (path, hour_bucket)
);
CREATE INDEX idx_stats_hour ON path_stats_hourly(hour_bucket);

CREATE TABLE path_stats_daily (
  path TEXT NOT NULL,
  day_bucket TEXT NOT NULL,  -- '2025-10-08', UTC
  requests INTEGER NOT NULL DEFAULT 0,
  errors INTEGER NOT NULL DEFAULT 0,
  sum_response_time REAL NOT NULL DEFAULT 0,
  count_response_time INTEGER NOT NULL DEFAULT 0,
  tdigest BLOB,
  hll_ip BLOB,
  PRIMARY KEY (path, day_bucket)
);
CREATE INDEX idx_stats_day ON path_stats_daily(day_bucket);

-- Which events the hours have counted, for as long as there are the hours: src/count.ts.
CREATE TABLE counted_hours (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL,
  hour_bucket TEXT NOT NULL,
  UNIQUE (hour_bucket, path)
);
CREATE TABLE counted_events (
  hour INTEGER NOT NULL,     -- counted_hours.id
  mark INTEGER NOT NULL,     -- milliseconds within the hour * 2^32 + the hash of the event's id
  PRIMARY KEY (hour, mark)
) WITHOUT ROWID;

-- Days whose hours have changed since they were rolled up.
CREATE TABLE changed_days (day_bucket TEXT PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE alerts (
  id INTEGER PRIMARY KEY,
  type TEXT NOT NULL,
  severity TEXT NOT NULL,    -- 'info', 'warning', 'critical'
  message TEXT NOT NULL,
  details TEXT NOT NULL,     -- JSON
  raised_at INTEGER NOT NULL,
  ended_at INTEGER
);
CREATE INDEX alerts_open ON alerts (type) WHERE ended_at IS NULL;

-- Events that the queue refused. They go to it again, and leave this table when it took them.
CREATE TABLE pending_events (
  id TEXT PRIMARY KEY,
  event TEXT NOT NULL
) WITHOUT ROWID;
