import type { APIRoute } from "astro";

export const POST: APIRoute = async ({ request, clientAddress }) => Response.json({ got: await request.json(), address: clientAddress });
export const GET: APIRoute = ({ locals }) => Response.json({ local: (locals as any).added });
