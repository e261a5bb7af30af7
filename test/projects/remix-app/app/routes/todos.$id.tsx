import { json, type LoaderFunctionArgs } from "@remix-run/cloudflare";
import { useLoaderData } from "@remix-run/react";

export async function loader({ params, context }: LoaderFunctionArgs) {
  if (!(await (context as any).cloudflare.env.TODOS.get(params.id))) throw new Response("no such todo", { status: 404 });
  return json({ id: params.id }, { headers: { "cache-control": "max-age=5" } });
}
export const headers = ({ loaderHeaders }: { loaderHeaders: Headers }) => ({ "cache-control": loaderHeaders.get("cache-control") ?? "no-cache" });
export default function Todo() {
  return <h1>{useLoaderData<typeof loader>().id}</h1>;
}
export function ErrorBoundary() {
  return <h1>not here</h1>;
}
