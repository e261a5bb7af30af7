import { DurableObject } from "cloudflare:workers";
import { acceptSocket, broadcast, parse } from "../../shared/sockets";

interface Person {
  id: string;
  name: string;
  hue: number;
  x: number; // 0 to 1, or -1: not pointing
  y: number;
  away: boolean;
}

/**
 * A space that people share. Nothing is stored: each person is the attachment of a socket, which outlives the
 * object's stay in memory and ends with the connection.
 */
export class Space extends DurableObject {
  fetch(request: Request): Response {
    const name = new URL(request.url).searchParams.get("name")!.trim();
    const person: Person = { id: crypto.randomUUID(), name, hue: Math.floor(Math.random() * 360), x: -1, y: -1, away: false };
    const people = this.people();
    const { socket, response } = acceptSocket(this.ctx, person);
    socket.send(JSON.stringify({ type: "welcome", you: person.id, people: [...people, person] }));
    broadcast(this.ctx, { type: "person", person }, socket);
    return response;
  }

  webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): void {
    const message = parse(data, 1000);
    const person = socket.deserializeAttachment() as Person;
    if (message?.type === "point" && isPlace(message.x) && isPlace(message.y)) {
      person.x = message.x;
      person.y = message.y;
      person.away = false;
    } else if (message?.type === "leave") {
      person.x = person.y = -1;
    } else if (message?.type === "away") {
      person.away = message.away === true;
    } else {
      return;
    }
    socket.serializeAttachment(person);
    broadcast(this.ctx, { type: "person", person }, socket);
  }

  webSocketClose(socket: WebSocket): void {
    broadcast(this.ctx, { type: "user_left", userId: (socket.deserializeAttachment() as Person).id }, socket);
  }

  private people(): Person[] {
    return this.ctx
      .getWebSockets()
      .filter((socket) => socket.readyState === WebSocket.OPEN)
      .map((socket) => socket.deserializeAttachment() as Person);
  }
}

const isPlace = (value: unknown): value is number => typeof value === "number" && value >= 0 && value <= 1;
