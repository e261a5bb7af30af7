import { createCookieSessionStorage, json, redirect, type ActionFunctionArgs, type LoaderFunctionArgs } from "@remix-run/cloudflare";
import { Form, useLoaderData } from "@remix-run/react";

const sessions = createCookieSessionStorage({ cookie: { name: "session", secrets: ["a secret"], httpOnly: true, path: "/" } });
export async function loader({ request, context }: LoaderFunctionArgs) {
  const session = await sessions.getSession(request.headers.get("cookie"));
  const { keys } = await (context as any).cloudflare.env.TODOS.list();
  return json({ todos: keys.map((k: any) => k.name) as string[], last: session.get("last") ?? null });
}
export async function action({ request, context }: ActionFunctionArgs) {
  const text = String((await request.formData()).get("text") ?? "");
  if (!text) return json({ error: "a text is missing" }, { status: 400 });
  await (context as any).cloudflare.env.TODOS.put(text, "1");
  const session = await sessions.getSession(request.headers.get("cookie"));
  session.set("last", text);
  return redirect("/", { headers: { "set-cookie": await sessions.commitSession(session) } });
}
export default function Index() {
  const { todos, last } = useLoaderData<typeof loader>();
  return (
    <main>
      <p>Last: {last ?? "none"}</p>
      <ul>{todos.map((todo) => <li key={todo}>{todo}</li>)}</ul>
      <Form method="post"><input name="text" /></Form>
    </main>
  );
}
