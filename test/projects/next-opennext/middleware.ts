import { NextResponse, type NextRequest } from "next/server";

export function middleware(request: NextRequest) {
  if (request.nextUrl.pathname === "/go") return NextResponse.redirect(new URL("/posts/went", request.url));
  if (request.nextUrl.pathname === "/alias") return NextResponse.rewrite(new URL("/posts/alias", request.url));
  const response = NextResponse.next();
  response.headers.set("x-middleware-ran", "yes");
  return response;
}
export const config = { matcher: ["/go", "/alias", "/posts/:path*"] };
