import { env } from "cloudflare:workers";
import { Suspense } from "react";
import { Await, Form, redirect } from "react-router";

const db = () => (env as any).DB as D1Database;
export const meta = () => [{ title: "Guests" }];
export async function loader() {
  const { results } = await db().prepare("select * from guests order by id").all();
  return { guests: results as { id: number; name: string }[], later: new Promise<string>((resolve) => setTimeout(resolve, 10, "later")) };
}
export async function action({ request }: { request: Request }) {
  const name = (await request.formData()).get("name");
  if (!name) return { error: "a name is missing" };
  const row = await db().prepare("insert into guests (name) values (?) returning id").bind(name).first<{ id: number }>();
  return redirect(`/guests/${row!.id}`, { headers: { "set-cookie": "last=" + name } });
}
export default function Home({ loaderData, actionData }: any) {
  return (
    <main>
      {actionData?.error && <p>{actionData.error}</p>}
      <ul>{loaderData.guests.map((g: any) => <li key={g.id}>{g.name}</li>)}</ul>
      <Form method="post"><input name="name" /></Form>
      <Suspense fallback={<p>wait</p>}><Await resolve={loaderData.later}>{(text: string) => <p>{text}</p>}</Await></Suspense>
    </main>
  );
}
