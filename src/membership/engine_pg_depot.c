/* SPDX-License-Identifier: Apache-2.0 */
/* membership/engine_pg_depot.c - the engine's tables of what was deployed, and its functions.
 *
 *     depot      one row: the state of all that was deployed (v4/depot.h), and the change that
 *                is under way
 *     follower   a row for each node that serves: what it runs, what it is ready for
 *     bundle     the files of a version, by path and SHA-256
 *     piece      their bytes, in pieces, once for each SHA-256
 *
 * A change of what is deployed has a number and a holder, a text that nobody else has:
 *
 *     hold ──► file, put ──► offer ──► all ready ──► commit ──► end
 *       │         (D9)         │           │            ▲
 *       └── no deployment: ────┴───────────┴────────────┘
 *
 * D8  One change at a time: the row's holder. Another takes its place only when no session of its
 *     disk is live, or it is of the same node: an earlier process of it (depot_leaves()), or a
 *     change whose end was not heard.
 * D9  Only the holder puts files, offers and commits: each asks for the row first. What no version
 *     of the state names is removed by the end of a change, so nobody else can be using it for one.
 * D10 A state with which something else is served becomes current only if every follower that is
 *     live has said, for this change, that it is ready. A node becomes one in a statement that asks
 *     for the same row, and only with what is current: so none is passed over.
 * D11 The table of classes that belongs to a state becomes current in the same transaction.
 * D12 Each function can be called again with the same words after a lost answer, and does no harm.
 * D13 A restore puts its files before there is a state: while there is none nobody serves, and the
 *     first node that does makes one, which ends the restore. Everything else of a backup becomes
 *     the cluster's in one transaction, restore(), which a cluster that was ever used refuses.
 *
 * `version` rises with each state, `serial` is the version of the last one with which something
 * else is served: only then nodes load again. */
#include "membership/engine_pg_private.h"

const char cn_engine_pg_depot[] =
    "CREATE TABLE IF NOT EXISTS cairn.depot(\n"
    "  one boolean PRIMARY KEY DEFAULT true CHECK (one),\n"
    "  version bigint NOT NULL, serial bigint NOT NULL, state text NOT NULL,\n"
    "  holder text NOT NULL DEFAULT '', disk bigint NOT NULL DEFAULT 0,\n"
    "  change bigint NOT NULL DEFAULT 0, done bigint NOT NULL DEFAULT 0, offered text);\n"
    "CREATE TABLE IF NOT EXISTS cairn.follower(\n"
    "  disk bigint PRIMARY KEY, version bigint NOT NULL, tokens bigint NOT NULL DEFAULT 0,\n"
    "  ready bigint NOT NULL DEFAULT 0, failed bigint NOT NULL DEFAULT 0,\n"
    "  why text NOT NULL DEFAULT '');\n"
    "CREATE TABLE IF NOT EXISTS cairn.bundle(\n"
    "  id text NOT NULL, path text NOT NULL, sum text NOT NULL, size bigint NOT NULL,\n"
    "  PRIMARY KEY (id, path));\n"
    "CREATE INDEX IF NOT EXISTS bundle_sum ON cairn.bundle(sum);\n"
    "CREATE TABLE IF NOT EXISTS cairn.piece(\n"
    "  sum text NOT NULL, part int NOT NULL, size int NOT NULL, body bytea NOT NULL,\n"
    "  PRIMARY KEY (sum, part));\n"
    "ALTER TABLE cairn.piece ALTER body SET STORAGE EXTERNAL;\n"
    /* Which node does not reach which, as it says itself: for those who look. */
    "CREATE TABLE IF NOT EXISTS cairn.unreached(\n"
    "  disk bigint NOT NULL, other bigint NOT NULL, why text NOT NULL, PRIMARY KEY (disk, "
    "other));\n"
    "CREATE OR REPLACE FUNCTION cairn.unreach(_disk bigint, _others bigint[], _whys text[])\n"
    "RETURNS text LANGUAGE plpgsql AS $$\n"
    "BEGIN\n"
    "  DELETE FROM cairn.unreached WHERE disk = _disk\n"
    "    OR NOT EXISTS (SELECT 1 FROM cairn.disk d WHERE d.id = cairn.unreached.disk);\n"
    "  INSERT INTO cairn.unreached SELECT DISTINCT ON (o) _disk, o, w\n"
    "    FROM unnest(_others, _whys) AS u(o, w);\n"
    "  RETURN 'done';\n"
    "END $$;\n"
    "CREATE OR REPLACE VIEW cairn.apart AS SELECT a.node AS node, b.node AS other, b.address, "
    "u.why\n"
    "  FROM cairn.unreached u JOIN cairn.disk a ON a.id = u.disk JOIN cairn.disk b ON b.id = "
    "u.other\n"
    "  WHERE EXISTS (SELECT 1 FROM cairn.session x WHERE x.disk = a.id AND x.live)\n"
    "    AND EXISTS (SELECT 1 FROM cairn.session x WHERE x.disk = b.id AND x.live);\n"

    /* Followers whose nodes are alive. */
    "CREATE OR REPLACE FUNCTION cairn.followers() RETURNS SETOF cairn.follower LANGUAGE sql AS $$\n"
    "  SELECT * FROM cairn.follower f WHERE EXISTS\n"
    "    (SELECT 1 FROM cairn.session s WHERE s.disk = f.disk AND s.live) $$;\n"
    "CREATE OR REPLACE FUNCTION cairn.node_of(_d bigint) RETURNS text LANGUAGE sql AS $$\n"
    "  SELECT coalesce((SELECT node FROM cairn.disk WHERE id = _d), '?') $$;\n"

    /* VERSION SERIAL STATE; made if there is none and `_first` is not empty. */
    "CREATE OR REPLACE FUNCTION cairn.depot_read(_first text) RETURNS text LANGUAGE plpgsql AS $$\n"
    "DECLARE _text text;\n"
    "BEGIN\n"
    "  IF _first <> '' THEN\n"
    "    INSERT INTO cairn.depot(version, serial, state) VALUES (1, 1, _first)\n"
    "      ON CONFLICT DO NOTHING;\n"
    "  END IF;\n"
    "  UPDATE cairn.depot SET version = version\n"
    "    RETURNING concat_ws(' ', version, serial, state) INTO _text;\n"
    "  RETURN _text;\n"
    "END $$;\n"

    /* D8: "mine CHANGE VERSION", or "held NODE". */
    "CREATE OR REPLACE FUNCTION cairn.depot_hold(_who text, _disk bigint) RETURNS text\n"
    "LANGUAGE plpgsql AS $$\n"
    "DECLARE r cairn.depot;\n"
    "BEGIN\n"
    "  SELECT * INTO r FROM cairn.depot FOR UPDATE;\n"
    "  IF r.holder NOT IN ('', _who) AND r.disk <> _disk AND EXISTS\n"
    "      (SELECT 1 FROM cairn.session WHERE disk = r.disk AND live) THEN\n"
    "    RETURN 'held ' || cairn.node_of(r.disk);\n"
    "  END IF;\n"
    "  IF r.holder <> _who THEN\n"
    "    r.change := r.change + 1;\n"
    "    UPDATE cairn.depot SET holder = _who, disk = _disk, change = r.change, offered = NULL;\n"
    "  ELSE\n"
    "    UPDATE cairn.depot SET holder = _who;\n"
    "  END IF;\n"
    "  RETURN concat_ws(' ', 'mine', r.change, r.version);\n"
    "END $$;\n"

    "CREATE OR REPLACE FUNCTION cairn.depot_holds(_who text) RETURNS boolean LANGUAGE plpgsql\n"
    "AS $$\n"
    "BEGIN\n"
    "  PERFORM 1 FROM cairn.depot WHERE holder = _who FOR SHARE;\n"
    /* D13 */
    "  RETURN FOUND OR (_who = 'restore' AND NOT EXISTS (SELECT 1 FROM cairn.depot));\n"
    "END $$;\n"

    /* Files of versions. "lost", or "want" and the sums whose bytes are not there. */
    "CREATE OR REPLACE FUNCTION cairn.depot_file(_who text, _ids text[], _paths text[],\n"
    "  _sums text[], _sizes bigint[]) RETURNS text LANGUAGE plpgsql AS $$\n"
    "BEGIN\n"
    "  IF NOT cairn.depot_holds(_who) THEN RETURN 'lost'; END IF;\n"
    "  INSERT INTO cairn.bundle(id, path, sum, size)\n"
    "    SELECT * FROM unnest(_ids, _paths, _sums, _sizes)\n"
    "    ON CONFLICT (id, path) DO UPDATE SET sum = excluded.sum, size = excluded.size;\n"
    "  RETURN concat_ws(' ', 'want', (SELECT string_agg(DISTINCT i.sum, ' ')\n"
    "    FROM unnest(_sums, _sizes) AS i(sum, size)\n"
    "    WHERE i.size IS DISTINCT FROM\n"
    "      (SELECT sum(p.size) FROM cairn.piece p WHERE p.sum = i.sum)));\n"
    "END $$;\n"

    "CREATE OR REPLACE FUNCTION cairn.depot_put(_who text, _sums text[], _parts int[],\n"
    "  _bodies text[], _limit bigint) RETURNS text LANGUAGE plpgsql AS $$\n"
    "BEGIN\n"
    "  IF NOT cairn.depot_holds(_who) THEN RETURN 'lost'; END IF;\n"
    "  IF (SELECT coalesce(sum(size), 0) FROM cairn.piece) > _limit THEN RETURN 'full'; END IF;\n"
    "  INSERT INTO cairn.piece(sum, part, size, body)\n"
    "    SELECT sum, part, length(body), body FROM (SELECT i.sum, i.part, decode(i.body, "
    "'base64')\n"
    "      AS body FROM unnest(_sums, _parts, _bodies) AS i(sum, part, body)) x\n"
    "    ON CONFLICT DO NOTHING;\n"
    "  RETURN 'done';\n"
    "END $$;\n"

    /* Lines of ID SUM SIZE PATH; */
    "CREATE OR REPLACE FUNCTION cairn.depot_list(_ids text[]) RETURNS text LANGUAGE sql AS $$\n"
    "  SELECT string_agg(concat_ws(' ', id, sum, size, path), E'\\n' ORDER BY id, path)\n"
    "    FROM cairn.bundle WHERE id = ANY (_ids) $$;\n"
    /* and of SUM PART BASE64. */
    "CREATE OR REPLACE FUNCTION cairn.depot_get(_sums text[], _parts int[]) RETURNS text\n"
    "LANGUAGE sql AS $$\n"
    "  SELECT string_agg(concat_ws(' ', p.sum, p.part, replace(encode(p.body, 'base64'), E'\\n',\n"
    "    '')), E'\\n') FROM cairn.piece p JOIN unnest(_sums, _parts) AS i(sum, part)\n"
    "    ON p.sum = i.sum AND p.part = i.part $$;\n"

    "CREATE OR REPLACE FUNCTION cairn.depot_offer(_who text, _version bigint, _state text)\n"
    "RETURNS text LANGUAGE plpgsql AS $$\n"
    "BEGIN\n"
    "  UPDATE cairn.depot SET offered = _state WHERE holder = _who AND version = _version;\n"
    "  IF NOT FOUND THEN RETURN 'lost'; END IF;\n"
    "  PERFORM pg_notify('cairn', 'depot');\n"
    "  RETURN 'done';\n"
    "END $$;\n"
    "CREATE OR REPLACE FUNCTION cairn.depot_offered(_change bigint) RETURNS text\n"
    "LANGUAGE plpgsql AS $$\n"
    "DECLARE _text text;\n"
    "BEGIN\n"
    "  UPDATE cairn.depot SET change = change WHERE change = _change RETURNING offered INTO "
    "_text;\n"
    "  RETURN _text;\n"
    "END $$;\n"

    /* "failed NODE WHY", "wait NODES" or "ready". */
    "CREATE OR REPLACE FUNCTION cairn.depot_asked(_change bigint, _self bigint) RETURNS text\n"
    "LANGUAGE sql AS $$\n"
    "  SELECT coalesce(\n"
    "    (SELECT concat_ws(' ', 'failed', cairn.node_of(disk), why) FROM cairn.followers()\n"
    "      WHERE failed = _change AND disk <> _self ORDER BY disk LIMIT 1),\n"
    "    (SELECT 'wait ' || string_agg(cairn.node_of(disk), ', ' ORDER BY disk)\n"
    "      FROM cairn.followers() WHERE ready <> _change AND disk <> _self), 'ready') $$;\n"
    "CREATE OR REPLACE FUNCTION cairn.depot_ready(_disk bigint, _change bigint, _why text)\n"
    "RETURNS text LANGUAGE plpgsql AS $$\n"
    "BEGIN\n"
    "  UPDATE cairn.follower SET ready = CASE _why WHEN '' THEN _change ELSE ready END,\n"
    "    failed = CASE _why WHEN '' THEN failed ELSE _change END, why = _why WHERE disk = _disk;\n"
    "  PERFORM pg_notify('cairn', 'depot');\n"
    "  RETURN 'done';\n"
    "END $$;\n"

    /* "done VERSION SERIAL", "lost", "wait NODES" (D10) or "classes": they are others (D11). */
    "CREATE OR REPLACE FUNCTION cairn.depot_commit(_who text, _change bigint, _version bigint,\n"
    "  _state text, _deploys boolean, _self bigint, _known bigint, _classes text) RETURNS text\n"
    "LANGUAGE plpgsql AS $$\n"
    "DECLARE r cairn.depot; _asked text;\n"
    "BEGIN\n"
    "  SELECT * INTO r FROM cairn.depot FOR UPDATE;\n"
    "  IF r.done = _change THEN\n"
    "    UPDATE cairn.depot SET done = done;\n"
    "    RETURN concat_ws(' ', 'done', r.version, r.serial);\n"
    "  END IF;\n"
    "  IF r.holder <> _who OR r.change <> _change OR r.version <> _version THEN\n"
    "    RETURN 'lost';\n"
    "  END IF;\n"
    "  IF _deploys THEN\n"
    "    _asked := cairn.depot_asked(_change, _self);\n"
    "    IF _asked <> 'ready' THEN RETURN _asked; END IF;\n"
    "  END IF;\n"
    "  IF _classes IS NOT NULL AND cairn.keep('classes', _known, _classes) IS NULL THEN\n"
    "    RETURN 'classes';\n"
    "  END IF;\n"
    "  r.version := r.version + 1;\n"
    "  IF _deploys THEN r.serial := r.version; END IF;\n"
    "  UPDATE cairn.depot SET version = r.version, serial = r.serial, state = _state,\n"
    "    done = _change, offered = NULL;\n"
    "  PERFORM pg_notify('cairn', 'depot');\n"
    "  RETURN concat_ws(' ', 'done', r.version, r.serial);\n"
    "END $$;\n"

    /* D9: the change is over; `_ids` are those of all versions and of their code, if the state has
     * the version. */
    "CREATE OR REPLACE FUNCTION cairn.depot_end(_who text, _version bigint, _ids text[])\n"
    "RETURNS text LANGUAGE plpgsql AS $$\n"
    "DECLARE r cairn.depot;\n"
    "BEGIN\n"
    "  SELECT * INTO r FROM cairn.depot WHERE holder = _who FOR UPDATE;\n"
    "  IF NOT FOUND THEN RETURN 'lost'; END IF;\n"
    "  IF r.version = _version THEN\n"
    "    DELETE FROM cairn.bundle WHERE id <> ALL (_ids);\n"
    "    DELETE FROM cairn.piece p WHERE NOT EXISTS\n"
    "      (SELECT 1 FROM cairn.bundle b WHERE b.sum = p.sum);\n"
    "  END IF;\n"
    "  UPDATE cairn.depot SET holder = '', offered = NULL;\n"
    "  PERFORM pg_notify('cairn', 'depot');\n"
    "  RETURN 'done';\n"
    "END $$;\n"

    /* A node is about to serve what it has loaded, or has loaded again. NULL: that is not what is
     * current (D10). */
    "CREATE OR REPLACE FUNCTION cairn.depot_serves(_disk bigint, _version bigint, _serial bigint)\n"
    "RETURNS text LANGUAGE plpgsql AS $$\n"
    "BEGIN\n"
    "  PERFORM 1 FROM cairn.depot WHERE serial = _serial FOR UPDATE;\n"
    "  IF NOT FOUND THEN RETURN NULL; END IF;\n"
    "  INSERT INTO cairn.follower AS f (disk, version) VALUES (_disk, _version)\n"
    "    ON CONFLICT (disk) DO UPDATE SET version = _version;\n"
    "  PERFORM pg_notify('cairn', 'depot');\n"
    "  RETURN 'done';\n"
    "END $$;\n"
    "CREATE OR REPLACE FUNCTION cairn.depot_knows(_disk bigint, _version bigint, _tokens bigint)\n"
    "RETURNS text LANGUAGE plpgsql AS $$\n"
    "BEGIN\n"
    "  UPDATE cairn.follower SET version = greatest(version, _version),\n"
    "    tokens = greatest(tokens, _tokens) WHERE disk = _disk;\n"
    "  PERFORM pg_notify('cairn', 'depot');\n"
    "  RETURN 'done';\n"
    "END $$;\n"
    /* A node starts: it does not serve yet, and what its process before it held is over. */
    "CREATE OR REPLACE FUNCTION cairn.depot_leaves(_disk bigint) RETURNS text\n"
    "LANGUAGE plpgsql AS $$\n"
    "BEGIN\n"
    "  UPDATE cairn.depot SET holder = '', offered = NULL WHERE disk = _disk AND holder <> '';\n"
    "  DELETE FROM cairn.follower WHERE disk = _disk;\n"
    "  RETURN 'done';\n"
    "END $$;\n"
    /* Nodes that do not know as much; NULL: all do. */
    "CREATE OR REPLACE FUNCTION cairn.depot_behind(_version bigint, _tokens bigint) RETURNS text\n"
    "LANGUAGE sql AS $$\n"
    "  SELECT string_agg(cairn.node_of(disk), ', ' ORDER BY disk) FROM cairn.followers()\n"
    "    WHERE version < _version OR tokens < _tokens $$;\n"

    /* VERSION SERIAL CHANGE TOKENS; a change that is offered, or 0. It writes nothing: a hint. */
    "CREATE OR REPLACE FUNCTION cairn.depot_look() RETURNS text LANGUAGE sql AS $$\n"
    "  SELECT concat_ws(' ', version, serial, CASE WHEN offered IS NULL THEN 0 ELSE change END,\n"
    "    coalesce((SELECT version FROM cairn.document WHERE name = 'tokens'), 0))\n"
    "    FROM cairn.depot $$;\n"
    /* D13: what fleet/cluster_backup.h has read; the last LSNs and epochs by shard. `trim` is the
     * LSN: no log has what is before it, so only the disk that has the stores may claim them.
     * "done", "used": it is not empty, "shards": it has another number of them. */
    "CREATE OR REPLACE FUNCTION cairn.restore(_state json, _disk bigint, _lsns bigint[],\n"
    "  _epochs bigint[]) RETURNS text LANGUAGE plpgsql AS $$\n"
    "BEGIN\n"
    "  PERFORM pg_advisory_xact_lock(4847253);\n"
    "  PERFORM 1 FROM cairn.cluster FOR UPDATE;\n"
    "  IF cairn.used() THEN RETURN 'used'; END IF;\n"
    "  IF (SELECT shards FROM cairn.cluster) <> cardinality(_lsns) THEN RETURN 'shards'; END IF;\n"
    "  UPDATE cairn.cluster SET secret = _state ->> 'secret';\n"
    "  INSERT INTO cairn.namespace(id, name) SELECT (x ->> 0)::int, x ->> 1\n"
    "    FROM json_array_elements(_state -> 'namespaces') x;\n"
    "  INSERT INTO cairn.document(name, version, body) SELECT x ->> 0, (x ->> 1)::bigint, x ->> 2\n"
    "    FROM json_array_elements(_state -> 'documents') x;\n"
    "  IF json_typeof(_state -> 'depot') = 'object' THEN\n"
    "    INSERT INTO cairn.depot(version, serial, state) VALUES (\n"
    "      (_state -> 'depot' ->> 'version')::bigint, (_state -> 'depot' ->> 'serial')::bigint,\n"
    "      _state -> 'depot' ->> 'state');\n"
    "  END IF;\n"
    "  UPDATE cairn.shard s SET epoch = u.epoch + 1, trim = u.lsn, disks = ARRAY[_disk],\n"
    "    checkpoints = ARRAY[u.lsn] FROM unnest(_lsns, _epochs) WITH ORDINALITY AS u(lsn, epoch, "
    "n)\n"
    "    WHERE s.id = u.n - 1 AND u.lsn > 0;\n"
    "  PERFORM cairn.changed();\n"
    "  RETURN 'done';\n"
    "END $$;\n"
    "CREATE OR REPLACE FUNCTION cairn.used() RETURNS boolean LANGUAGE sql AS $$\n"
    "  SELECT EXISTS (SELECT 1 FROM cairn.disk) OR EXISTS (SELECT 1 FROM cairn.session)\n"
    "    OR EXISTS (SELECT 1 FROM cairn.namespace) OR EXISTS (SELECT 1 FROM cairn.document)\n"
    "    OR EXISTS (SELECT 1 FROM cairn.depot)\n"
    "    OR EXISTS (SELECT 1 FROM cairn.shard WHERE epoch > 0 OR trim > 0) $$;\n"

    "CREATE OR REPLACE FUNCTION cairn.depot_tokens(_known bigint, _body text) RETURNS text\n"
    "LANGUAGE plpgsql AS $$\n"
    "DECLARE _version text;\n"
    "BEGIN\n"
    "  _version := cairn.keep('tokens', _known, _body);\n"
    "  PERFORM pg_notify('cairn', 'depot');\n"
    "  RETURN _version;\n"
    "END $$;\n";
