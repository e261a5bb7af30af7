export const loader = () => Response.json({ at: 0 }, { headers: { "x-route": "resource" } });
export const action = async ({ request }: { request: Request }) => Response.json({ method: request.method, got: await request.json() });
