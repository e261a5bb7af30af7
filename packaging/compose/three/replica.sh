#!/bin/bash
# Run once, when the primary's data are made: a role for the standby, its slot, and who may copy. From the next start,
# which follows, nothing is acknowledged before the standby has it, too.
set -euo pipefail
psql -v ON_ERROR_STOP=1 -v password="$REPLICA_PASSWORD" -U postgres <<'SQL'
CREATE ROLE replica LOGIN REPLICATION PASSWORD :'password';
SELECT pg_create_physical_replication_slot('standby');
ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (primary, standby)';
SQL
echo 'host replication replica all scram-sha-256' >>"$PGDATA/pg_hba.conf"
