import { notFound, redirect } from "next/navigation";
import { Suspense } from "react";

export const dynamic = "force-dynamic";
async function Later({ slug }: { slug: string }) {
  await new Promise((resolve) => setTimeout(resolve, 400));
  return <p id="later">later: {slug}</p>;
}
export async function generateMetadata({ params }: { params: Promise<{ slug: string }> }) {
  return { title: `Post ${(await params).slug}` };
}
export default async function Post({ params }: { params: Promise<{ slug: string }> }) {
  const { slug } = await params;
  if (slug === "none") notFound();
  if (slug === "old") redirect("/posts/new");
  return (
    <main>
      <h1>{slug}</h1>
      <Suspense fallback={<p>wait</p>}>
        <Later slug={slug} />
      </Suspense>
    </main>
  );
}
