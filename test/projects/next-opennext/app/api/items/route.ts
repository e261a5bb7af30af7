import { getCloudflareContext } from "@opennextjs/cloudflare";
import { cookies } from "next/headers";
import { NextResponse, type NextRequest } from "next/server";

export async function GET(request: NextRequest) {
  const { env } = getCloudflareContext() as any;
  const { keys } = await env.ITEMS.list();
  return NextResponse.json({ items: keys.map((k: { name: string }) => k.name), q: request.nextUrl.searchParams.get("q"), who: (await cookies()).get("who")?.value ?? null });
}
export async function POST(request: NextRequest) {
  const { env } = getCloudflareContext() as any;
  const { name } = await request.json();
  if (!name) return NextResponse.json({ error: "a name is missing" }, { status: 400 });
  await env.ITEMS.put(name, "1");
  (await cookies()).set("who", name, { httpOnly: true });
  return NextResponse.json({ name }, { status: 201 });
}
