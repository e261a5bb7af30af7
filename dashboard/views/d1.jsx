// D1 databases: their tables, and a console.
import { useState } from "preact/hooks";
import { get, path, sql } from "../lib/api.js";
import * as format from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { href } from "../lib/router.js";
import { bindingsColumn, Choose, idColumn, sizeColumn } from "../ui/choose.jsx";
import { Button, Empty, Head, Loaded, toast } from "../ui/parts.jsx";
import { Console, quote } from "../ui/sql.jsx";

/** The answers {results: [objects], meta} as tables. */
function toTables(results) {
  return results.map(({ results: rows, meta }) => {
    const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    return { columns, rows: rows.map((row) => columns.map((name) => (Array.isArray(row[name]) ? { base64: " ".repeat(Math.ceil(row[name].length * 4 / 3)) } : row[name]))), rowsRead: meta?.rows_read ?? 0, rowsWritten: meta?.rows_written ?? 0 };
  });
}

const run = async (id, text) => ({ results: toTables((await sql(path`/api/d1/${id}/query`, text)).results) });


function Database({ id }) {
  const [given, setGiven] = useState();
  const about = useLoad(async (signal) => (await get("/api/d1", { signal })).databases.find((database) => database.id === id) ?? { id, name: id }, [id]);
  const tables = useLoad(async () => {
    const { results: [{ rows }] } = await run(id, "SELECT name, sql FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '_cf_%' ORDER BY name");
    return rows.map(([name, schema]) => ({ name, schema }));
  }, [id]);
  const bookmark = async () => {
    const { bookmark } = await get(path`/api/d1/${id}/bookmark`);
    await navigator.clipboard?.writeText(bookmark).catch(() => {});
    toast(`bookmark of now: ${bookmark}`);
  };
  return (
    <>
      <Head title={about.data?.name ?? id} up={["D1", href(["d1"])]} note={about.data?.bytes !== undefined ? format.bytes(about.data.bytes) : undefined}>
        <a class="button" href={href(["object", `$d1/${id}`, "db", "history"])}>History</a>
        <Button onClick={bookmark}>Bookmark</Button>
      </Head>
      <Loaded of={tables} rows={2}>{(list) => (list.length
        ? <div class="chips">{list.map(({ name, schema }) => <button type="button" key={name} class="chip" title={schema} data-row onClick={() => setGiven({ text: `SELECT * FROM ${quote(name)} LIMIT 50` })}>{name}</button>)}</div>
        : <Empty title="No tables yet">CREATE TABLE makes the first; `cairn d1 migrations apply` those of a project.</Empty>)}
      </Loaded>
      <Console key={id} guarded={false} run={(text) => run(id, text).then((answer) => { if (/\b(create|drop|alter)\b/i.test(text)) tables.reload(); return answer; })} given={given} />
    </>
  );
}

export function D1({ route }) {
  const id = route.path[1];
  if (id) return <Database key={id} id={id} />;
  return <Choose view="d1" title="D1" target="/api/d1" items={({ databases }) => databases} idOf={({ id }) => id}
    columns={[{ title: "Database", wide: true, cell: ({ name }) => name }, bindingsColumn, idColumn, sizeColumn]}
    empty={<Empty title="No databases">A project's [[d1_databases]] are listed here.</Empty>} />;
}
