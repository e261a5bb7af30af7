// One of several things (databases, namespaces, buckets, queues): their list, or the one that is chosen.
import { get } from "../lib/api.js";
import * as format from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { href } from "../lib/router.js";
import { Empty, Head, Loaded, Table } from "./parts.jsx";

/** The workers that a thing is bound to, and as what. */
export const bindingsColumn = { title: "Bound as", minor: true, cell: ({ bindings }) => <span class="soft">{bindings?.length ? bindings.map(({ worker, name }) => `${worker}: ${name}`).join(", ") : "–"}</span> };

export const idColumn = { title: "Id", mono: true, minor: true, cell: ({ id }) => <span class="faint">{format.brief(id, 24)}</span> };
export const sizeColumn = { title: "Size", right: true, cell: ({ bytes }) => format.bytes(bytes) };

/** The list of `view`; `items(answer)` takes it out of what the API answers. */
export function Choose({ view, title, target, items, idOf, columns, empty }) {
  const loaded = useLoad((signal) => get(target, { signal }).then(items), [target]);
  return (
    <>
      <Head title={title} />
      <Loaded of={loaded}>{(list) => (list.length ? <Table rows={list} rowKey={idOf} link={(item) => href([view, idOf(item)])} columns={columns} /> : empty ?? <Empty title="Nothing here" />)}</Loaded>
    </>
  );
}
