// Cron triggers: when each runs next, and what the last runs did.
import { useState } from "preact/hooks";
import { get, path, post } from "../lib/api.js";
import * as format from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { href } from "../lib/router.js";
import { Badge, Button, Empty, Head, Loaded, Table, Time, toast } from "../ui/parts.jsx";

function Outcome({ run }) {
  if (!run) return <span class="faint">never</span>;
  return <Badge kind={run.outcome === "ok" ? "good" : run.outcome ? "bad" : "warn"}>{run.outcome ?? "running"}</Badge>;
}

function Runs({ worker }) {
  const runs = useLoad(async (signal) => (await get(path`/api/crons/${worker}`, { signal })).result.runs, [worker], { every: 5000 });
  return (
    <Loaded of={runs}>{(list) => (list.length ? <Table caption={`Runs of ${worker}`} rows={list} rowKey={({ id }) => id} columns={[
      { title: "Scheduled", cell: ({ scheduledTime }) => format.time(scheduledTime) },
      { title: "Cron", mono: true, cell: ({ cron }) => cron },
      { title: "Outcome", cell: (run) => <Outcome run={run} /> },
      { title: "Took", right: true, cell: ({ started, ended }) => (ended ? format.seconds((ended - started) / 1000) : "–") },
      { title: "By", minor: true, cell: ({ manual }) => (manual ? "hand" : "schedule") },
      { title: "Message", minor: true, wide: true, cell: ({ message }) => <span class="soft">{message ?? ""}</span> }]} />
      : <Empty title="No runs yet">The last hundred are kept.</Empty>)}
    </Loaded>
  );
}

export function Crons({ route }) {
  const loaded = useLoad(async (signal) => (await get("/api/crons", { signal })).result.schedules, [], { every: 5000 });
  const chosen = route.path[1] ?? loaded.data?.[0]?.worker;
  const [turn, setTurn] = useState(0);
  const trigger = async ({ worker, cron }) => {
    const { result } = await post(path`/api/crons/${worker}/trigger`, { cron });
    toast(`${worker}: ${result.outcome}${result.error ? `, ${result.error}` : ` in ${result.duration} ms`}`, result.outcome === "ok" ? "good" : "bad");
    loaded.reload();
    setTurn((turn) => turn + 1);
  };
  return (
    <>
      <Head title="Cron" />
      <Loaded of={loaded}>{(schedules) => (schedules.length ? (
        <>
          <Table rows={schedules} rowKey={({ worker, cron }) => worker + cron} link={({ worker }) => href(["crons", worker])} columns={[
            { title: "Worker", wide: true, cell: ({ worker }) => worker },
            { title: "Cron", mono: true, cell: ({ cron }) => cron },
            { title: "Next", cell: ({ next }) => <Time ms={next} /> },
            { title: "Last", minor: true, cell: ({ last }) => <Time ms={last?.scheduledTime} /> },
            { title: "Outcome", cell: ({ last }) => <Outcome run={last} /> },
            { title: "", right: true, cell: (schedule) => <Button kind="small" onClick={() => trigger(schedule)}>Run now</Button> }]} />
          {chosen && <Runs key={chosen + turn} worker={chosen} />}
        </>) : <Empty title="No cron triggers">A project's [triggers] crons are listed here.</Empty>)}
      </Loaded>
    </>
  );
}
