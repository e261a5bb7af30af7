-- Every recorded request, for a few days. Its id is made from the request: a second copy is the same row.
CREATE TABLE traffic_events (
  row         INTEGER PRIMARY KEY,
  id          TEXT    NOT NULL UNIQUE,
  event_date  TEXT    NOT NULL,  -- YYYY-MM-DD, UTC
  ts          INTEGER NOT NULL,  -- milliseconds since 1970
  path        TEXT    NOT NULL,
  method      TEXT,
  status      INTEGER,
  ms          REAL,
  ip_hash     TEXT,
  agent       TEXT,
  country     TEXT,
  request_id  TEXT
);
CREATE INDEX traffic_events_date ON traffic_events (event_date, row);
CREATE INDEX traffic_events_ts ON traffic_events (ts);

-- One row per path and hour. The sketches merge: t-digest of response times, HyperLogLog of addresses.
CREATE TABLE path_stats_hourly (
  path        TEXT    NOT NULL,
  hour        INTEGER NOT NULL,  -- milliseconds since 1970, the hour's beginning
  requests    INTEGER NOT NULL,
  errors      INTEGER NOT NULL,  -- status 400 and above
  ms_sum      REAL    NOT NULL,
  ms_count    INTEGER NOT NULL,
  digest      BLOB    NOT NULL,
  uniques     BLOB    NOT NULL,
  updated_at  INTEGER NOT NULL,
  PRIMARY KEY (path, hour)
) WITHOUT ROWID;
CREATE INDEX path_stats_hourly_hour ON path_stats_hourly (hour);

CREATE TABLE path_stats_daily (
  path        TEXT    NOT NULL,
  day         TEXT    NOT NULL,
  requests    INTEGER NOT NULL,
  errors      INTEGER NOT NULL,
  ms_sum      REAL    NOT NULL,
  ms_count    INTEGER NOT NULL,
  digest      BLOB    NOT NULL,
  uniques     BLOB    NOT NULL,
  updated_at  INTEGER NOT NULL,
  PRIMARY KEY (path, day)
) WITHOUT ROWID;

CREATE TABLE alerts (
  id        INTEGER PRIMARY KEY,
  kind      TEXT    NOT NULL,
  message   TEXT    NOT NULL,
  raised_at INTEGER NOT NULL,
  ended_at  INTEGER
);
CREATE INDEX alerts_open ON alerts (kind) WHERE ended_at IS NULL;

-- Events that the queue refused. They go to it again, and leave this table when it took them.
CREATE TABLE pending_events (
  id    TEXT PRIMARY KEY,
  event TEXT NOT NULL
) WITHOUT ROWID;
