// The past of an object: a slider over its commits, and the way back to one of them.
import { useMemo, useState } from "preact/hooks";
import { download, get, post, query } from "../lib/api.js";
import * as format from "../lib/format.js";
import { usePages } from "../lib/load.js";
import { Badge, Button, confirm, Copy, Empty, Facts, Loading, Table, Time, toast, Trouble } from "../ui/parts.jsx";

const LIMIT = 500, WIDTH = 600, HEIGHT = 64;
const kinds = { write: "", reset: "warn", delete: "bad", restore: "good" };

/** The size of the database after each commit, oldest first, with the chosen one marked. */
function Sizes({ commits, at }) {
  const top = Math.max(1, ...commits.map(({ size }) => size));
  const x = (i) => (commits.length > 1 ? (i / (commits.length - 1)) * WIDTH : WIDTH), y = (size) => HEIGHT - 2 - (size / top) * (HEIGHT - 8);
  const steps = commits.map(({ size }, i) => `${i ? `H${x(i).toFixed(1)}V` : `M0 `}${y(size).toFixed(1)}`).join("");
  return (
    <svg class="sizes" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <path class="area" d={`${steps}V${HEIGHT}H0Z`} />
      <path class="line" d={steps} />
      <path class="cross" d={`M${x(at).toFixed(1)} 0V${HEIGHT}`} />
    </svg>
  );
}

export function History({ base, object, reload }) {
  const pages = usePages(async (cursor, signal) => {
    const { commits, cursor: next } = await get(`${base}/history${query({ cursor, limit: LIMIT })}`, { signal });
    return { items: commits, cursor: next };
  }, [base]);
  const commits = useMemo(() => [...pages.items].reverse(), [pages.items]); // the oldest first
  const [chosen, setChosen] = useState(); // an LSN; undefined: the latest that has anything
  const [undo, setUndo] = useState();
  const found = commits.findIndex(({ lsn }) => lsn === chosen);
  const at = found >= 0 ? found : commits.at(-1)?.kind === "delete" ? commits.length - 2 : commits.length - 1;
  const commit = commits[at];
  const restore = async (bookmark, text) => {
    const sure = await confirm({ title: "Restore this object?", text, action: "Restore" });
    if (!sure) return;
    const answer = await post(`${base}/restore`, { bookmark });
    setUndo(answer.undo);
    setChosen(undefined);
    toast("restored");
    pages.reload();
    reload();
  };
  if (pages.error) return <Trouble error={pages.error} retry={pages.reload} />;
  if (!commit) return pages.loading ? <Loading /> : <Empty title="No past">No commit of this object is kept in the history.</Empty>;
  return (
    <>
      {undo && <div class="card undo"><span>Restored. What it was before is the bookmark <Copy text={undo}><code>{format.brief(undo, 32)}</code></Copy></span>
        <Button kind="small" onClick={() => restore(undo, "It becomes what it was before the restore.")}>Undo</Button></div>}
      <div class="card slider">
        <Sizes commits={commits} at={at} />
        <input type="range" min={0} max={commits.length - 1} value={at} aria-label="Moment" aria-valuetext={format.time(commit.time, true)} onInput={(event) => setChosen(commits[Number(event.target.value)].lsn)} />
        <div class="ends"><Time ms={commits[0].time} exact /><Time ms={commits.at(-1).time} exact /></div>
        <Facts items={[
          ["Moment", <strong data-moment>{format.time(commit.time, true)}</strong>],
          ["Commit", `${format.count(at + 1)} of ${pages.cursor ? "the last " : ""}${format.count(commits.length)}`],
          ["Size after it", format.bytes(commit.size)],
          ["Changed pages", format.count(commit.pages)],
          ["Kind", <Badge kind={kinds[commit.kind]}>{commit.kind}</Badge>],
          ["Bookmark", <Copy text={commit.bookmark}><span class="mono">{format.brief(commit.bookmark, 20)}</span></Copy>]]} />
        <div class="tools">
          <Button kind="primary" disabled={at === commits.length - 1} onClick={() => restore(commit.bookmark, <>Database, alarm and name become what they were at <strong>{format.time(commit.time, true)}</strong>: {format.count(commits.length - 1 - at)} later commits are undone. A live instance ends. This can be undone.</>)}>Restore to this moment</Button>
          <Button disabled={commit.kind === "delete"} onClick={() => download(`${base}/export${query({ bookmark: commit.bookmark })}`, `${object.name ?? object.id}-${commit.lsn}.sqlite`)}>Download as it was</Button>
          {pages.cursor && <Button onClick={() => pages.more()} disabled={pages.loading}>Older commits</Button>}
        </div>
      </div>
      <Table rows={[...commits].reverse().slice(0, 100)} rowKey={({ lsn }) => lsn} onOpen={({ lsn }) => setChosen(lsn)} columns={[
        { title: "Time", cell: ({ time, lsn }) => <span class={lsn === commit.lsn ? "chosen" : ""}>{format.time(time, true)}</span> },
        { title: "Kind", cell: ({ kind }) => <Badge kind={kinds[kind]}>{kind}</Badge> },
        { title: "Pages", right: true, cell: ({ pages }) => format.count(pages) },
        { title: "Size after", right: true, cell: ({ size }) => format.bytes(size) },
        { title: "Commit", right: true, minor: true, mono: true, cell: ({ lsn }) => format.count(lsn) }]} />
    </>
  );
}
