import { env } from "cloudflare:workers";
import { data } from "react-router";

export async function loader({ params }: { params: { id: string } }) {
  const guest = await ((env as any).DB as D1Database).prepare("select * from guests where id = ?").bind(params.id).first();
  if (!guest) throw data("no such guest", { status: 404 });
  return { guest };
}
export default function Guest({ loaderData }: any) {
  return <h1>{loaderData.guest.name}</h1>;
}
