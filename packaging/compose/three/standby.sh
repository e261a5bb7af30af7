#!/bin/bash
# The standby: a copy of the primary at the first start, which then follows it.
set -euo pipefail
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    install -d -m 700 -o postgres -g postgres "$PGDATA"
    PGPASSWORD=$REPLICA_PASSWORD gosu postgres pg_basebackup -D "$PGDATA" -X stream -R -S standby \
        -d "host=primary user=replica application_name=standby"
fi
exec gosu postgres postgres -c cluster_name=standby
