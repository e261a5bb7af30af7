// The cluster: who is there, which shard is whose, how far replicas are, the engine, and what moves.
import { useRef } from "preact/hooks";
import { get } from "../lib/api.js";
import * as format from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { Badge, Head, Loaded, Table } from "../ui/parts.jsx";

const COLORS = ["k0", "k1", "k2", "k4", "k5", "k6", "k7"]; // k3 is the red of what is nobody's
const CELL = 20, GAP = 3;

/** What an operator should know first, worst first: {kind, text}. */
export function findings({ status, nodes, shards, self }) {
  const list = [], add = (kind, text) => list.push({ kind, text });
  const { engine } = status;
  if (!self.lease) add("bad", `${self.node} has no lease: it answers nothing until the engine does${self.engine ? ` (${self.engine})` : ""}`);
  if (status.shardsWithoutOwner) add("bad", `${format.count(status.shardsWithoutOwner)} shards have no owner: calls to their objects fail as retryable`);
  if (!engine.synchronousStandbyNames || !["on", "remote_apply"].includes(engine.synchronousCommit) || engine.fsync !== "on" || engine.fullPageWrites !== "on")
    add("bad", "the engine may lose what it has acknowledged: see its settings");
  if (!engine.standbys.length) add("bad", "the engine has no standby: writes wait until one is back");
  for (const { name } of nodes.filter(({ state }) => state === "away")) add("warn", `${name} is away`);
  if (status.shardsWithFewerReplicas) add("warn", `${format.count(status.shardsWithFewerReplicas)} shards have fewer than ${status.replicas} replicas alive`);
  if (status.deployment?.behind) add("warn", `not served yet by ${status.deployment.behind}: version ${status.deployment.version} of what is deployed`);
  if (status.deployment?.underWay) add("", `${status.deployment.underWay.node} deploys${status.deployment.underWay.waitsFor ? `: ${status.deployment.underWay.waitsFor}` : ""}`);
  for (const { name, owns, replicas } of nodes.filter(({ state }) => state === "draining")) add("", `${name} is drained: ${owns} shards and ${replicas} replicas are left`);
  if (status.shardsMoving) add("", `${format.count(status.shardsMoving)} shards are copied or moved`);
  return list;
}

/** How far behind the disks of each node are, in records that they have not synced: name -> {most, shards}. */
export function lag(shards) {
  const of = new Map();
  for (const { replicas } of shards)
    for (const { node, behind } of replicas) {
      const one = of.get(node) ?? { most: 0, shards: 0 };
      of.set(node, { most: Math.max(one.most, behind), shards: one.shards + (behind > 0) });
    }
  return of;
}

const about = ({ id, owner, epoch, replicas }) => [`shard ${id}: ${owner ?? "nobody's"}, epoch ${epoch}`,
  ...replicas.map(({ node, alive, behind }) => `${node}: ${alive ? (behind ? `${format.count(behind)} records behind` : "has everything") : "away"}`)].join("\n");

/** Every shard as a cell in its owner's colour; a corner for each other replica; framed where something is missing. */
function ShardMap({ shards, colors, wanted }) {
  const across = shards.length > 256 ? 64 : shards.length > 64 ? 32 : 16;
  const rows = Math.ceil(shards.length / across), step = CELL + GAP;
  return (
    <svg class="shards" viewBox={`-2 -2 ${across * step + 1} ${rows * step + 1}`} role="img" aria-label={`${shards.length} shards by owner`}>
      {shards.map((shard, i) => {
        const x = (i % across) * step, y = Math.floor(i / across) * step;
        const others = shard.replicas.filter(({ node }) => node !== shard.owner);
        const alive = shard.replicas.filter((replica) => replica.alive).length;
        const state = !shard.owner ? "none" : alive < wanted ? "few" : shard.replicas.length > wanted ? "moving" : "";
        return (
          <g key={shard.id}>
            <title>{about(shard)}</title>
            <rect class={`${shard.owner ? colors.get(shard.owner) : "nobody"} ${state}`} x={x} y={y} width={CELL} height={CELL} rx="4" />
            {others.slice(0, 3).map(({ node, alive }, k) => <circle key={node} class={alive ? colors.get(node) : "nobody"} cx={x + 5 + 5 * k} cy={y + CELL - 5} r="2.6" />)}
          </g>
        );
      })}
    </svg>
  );
}

function Engine({ engine }) {
  return (
    <section class="card engine" aria-label="The engine">
      <h2>Engine</h2>
      <dl>
        <dt>Primary</dt><dd>{engine.address}, PostgreSQL {engine.serverVersion}, timeline {engine.timeline}</dd>
        <dt>Standbys</dt>
        <dd>{engine.standbys.length ? engine.standbys.map(({ name, state, sync, behindBytes }) => (
          <div key={name}>{name} <Badge kind={["sync", "quorum"].includes(sync) ? "good" : sync ? "warn" : ""}>{sync ?? "seen"}</Badge> <span class="soft">{state === null ? "more is told to a role with pg_monitor" : `${state}, ${format.bytes(Math.max(0, behindBytes ?? 0))} behind`}</span></div>)) : <Badge kind="bad">none</Badge>}</dd>
        <dt>Waits for</dt><dd><code>{engine.synchronousStandbyNames || "nobody"}</code>, synchronous_commit <code>{engine.synchronousCommit}</code>, fsync <code>{engine.fsync}</code>, full_page_writes <code>{engine.fullPageWrites}</code></dd>
        <dt>Holds</dt><dd>{format.bytes(engine.logBytes)} of log, {format.bytes(engine.filesBytes)} of files that were deployed</dd>
      </dl>
    </section>
  );
}

export function Cluster() {
  const beats = useRef(new Map());
  const loaded = useLoad((signal) => get("/api/cluster", { signal }), [], { every: 2000 });
  return (
    <>
      <Head title="Cluster" note={loaded.data && `${loaded.data.status.nodesAlive} nodes · ${loaded.data.status.shards} shards · ${loaded.data.status.replicas} replicas of each`} />
      <Loaded of={loaded}>{(data) => {
        const { status, nodes, shards, self } = data;
        const colors = new Map([...new Set(nodes.map(({ name }) => name))].map((name, i) => [name, COLORS[i % COLORS.length]]));
        const behind = lag(shards), found = findings(data);
        const before = beats.current;
        beats.current = new Map(nodes.map(({ disk, beat }) => [disk, beat]));
        return (
          <div class="cluster">
            <section class="card findings" aria-label="State">
              {found.some(({ kind }) => kind) ? null : <p><Badge kind="good">whole</Badge> Every shard has an owner and its replicas, and the engine its standby.</p>}
              {found.map(({ kind, text }) => <p key={text}><Badge kind={kind}>{{ bad: "act", warn: "look" }[kind] ?? "under way"}</Badge> {text}</p>)}
            </section>
            <section class="card" aria-label="Shards by owner">
              <h2>Shards by owner</h2>
              <ShardMap shards={shards} colors={colors} wanted={status.replicas} />
              <ul class="kinds">
                {nodes.map(({ name, disk, owns }) => <li key={disk}><i class={colors.get(name)} />{name} <b>{owns}</b></li>)}
                <li class="faint">A dot is another replica. Red: nobody's, or away; dashed: fewer replicas than wanted; framed: copied or moved.</li>
              </ul>
            </section>
            <Table caption="Nodes" rows={nodes} rowKey={({ disk }) => disk} columns={[
              { title: "Node", wide: true, cell: ({ name }) => <><i class={`swatch ${colors.get(name)}`} />{name}{name === self.node && <span class="faint"> · this one</span>}</> },
              { title: "State", cell: ({ state }) => <Badge kind={{ alive: "good", draining: "warn" }[state] ?? "bad"}>{state}</Badge> },
              { title: "Lease", cell: ({ state, disk, beat, name }) => (state === "away" ? <span class="faint">–</span> : name === self.node ? (self.lease ? "held" : <Badge kind="bad">none</Badge>)
                : before.has(disk) && before.get(disk) === beat ? <Badge kind="warn">silent</Badge> : "beats") },
              { title: "Owns", right: true, cell: ({ owns }) => owns },
              { title: "Replicas", right: true, cell: ({ replicas }) => replicas },
              { title: "Most behind", right: true, cell: ({ name }) => (behind.get(name)?.most ? `${format.count(behind.get(name).most)} records` : "0") },
              { title: "Deployed", right: true, minor: true, cell: ({ deployed }) => deployed ?? "–" },
              { title: "Address", minor: true, mono: true, cell: ({ address }) => address }]} />
            <Engine engine={status.engine} />
          </div>
        );
      }}</Loaded>
    </>
  );
}
