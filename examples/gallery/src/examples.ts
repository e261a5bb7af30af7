// What the gallery shows, in this order. A folder of examples/ or apps/ is also the first part of its project's host.
export interface Example {
  folder: string;
  title: string;
  text: string;
}

export const examples: Example[] = [
  { folder: "rate-limiting", title: "Rate limiting", text: "A sliding window per user or address, exact under any concurrency." },
  { folder: "distributed-lock", title: "Distributed lock", text: "One holder at a time, automatic release, fencing tokens, a queue of those who wait." },
  { folder: "sharded-counter", title: "Sharded counter", text: "More writes than one object can take, over 100 of them; 10 to 1,000 if measured so." },
  { folder: "unique-shards", title: "Unique shards", text: "A shard of its own for every writer, by newUniqueId(), and a directory that knows them." },
  { folder: "sessions", title: "Sessions", text: "Server-side state per visitor that ends by itself." },
  { folder: "scheduler", title: "Scheduler", text: "Any number of events on one alarm, in order, kept through restarts." },
  { folder: "graceful-cleanup", title: "Graceful clean-up", text: "Answer first, clear up afterwards, lose track of nothing." },
  { folder: "point-in-time-undo", title: "Point-in-time undo", text: "The whole object back to the moment before a mistake." },
  { folder: "chat-room", title: "Chat room", text: "Rooms that sleep while nobody talks, with everybody still connected." },
  { folder: "collaborative-document", title: "Collaborative document", text: "Many write one text at once; nothing is lost, nothing applied twice." },
  { folder: "presence", title: "Presence", text: "Who is here and where they point, kept with the connections alone." },
  { folder: "resilient-client", title: "Resilient client", text: "A WebSocket that comes back, and loses and doubles nothing." },
  { folder: "retrying-client", title: "Retrying client", text: "Calls that are tried again with growing pauses where that helps: .retryable and .overloaded." },
  { folder: "rpc-and-fetch", title: "RPC and fetch side by side", text: "Two ways to call an object, and when to use which." },
  { folder: "documents", title: "Documents", text: "The documents of this tree: files alone, made by a build command, with a search in the browser." },
];

export const applications: Example[] = [
  { folder: "path-stats", title: "Path statistics", text: "Traffic through a queue into objects, D1, KV, Cache and an R2 archive, with a dashboard." },
  { folder: "riven-tracker", title: "RivenTracker", text: "A market sampled minute by minute around one coordinator: D1, KV, cron, a page with trends. Its prices are made up here: a stand-in answers for the market." },
];
