// Archiving takes longer than a request may, and must not be done twice at a time: one object does it, a day after the other, by alarm.
// What was asked for is durable; after a restart it goes on (R3 of src/archive.ts).
import { DurableObject } from "cloudflare:workers";
import { ageArchive, type ArchiveMetadata, deleteDay, detailCount, listArchives, nextKey, readMetadata, writeDay } from "./archive";
import type { Env } from "./env";

export interface Job {
  date: string;
  state: "pending" | "writing" | "deleting" | "done" | "failed";
  /** The file that is being written, or was. */
  key: string | null;
  /** Files of the day that it takes the place of: they go when it is the day's. */
  replaces: string[];
  recordCount: number;
  size: number;
  deleted: number;
  attempts: number;
  error: string | null;
  requestedAt: number;
  endedAt: number | null;
}

const TRIES_MOST = 5;
const RETRY_MS = 30_000;
const JOBS_KEPT = 100;
const AGE = "age";

const newJob = (date: string): Job => ({ date, state: "pending", key: null, replaces: [], recordCount: 0, size: 0, deleted: 0, attempts: 0, error: null, requestedAt: Date.now(), endedAt: null });

export class ArchiverDO extends DurableObject<Env> {
  private readonly sql = this.ctx.storage.sql;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.sql.exec("CREATE TABLE IF NOT EXISTS jobs (date TEXT PRIMARY KEY, due INTEGER, job TEXT NOT NULL) WITHOUT ROWID");
  }

  /** Asks for a day; asking twice is asking once. What waits to be tried again is tried at once. */
  async request(date: string): Promise<Job> {
    const known = this.find(date);
    const underWay = known !== null && ["pending", "writing", "deleting"].includes(known.state);
    const job = underWay ? known : newJob(date);
    this.keep(job, Date.now());
    await this.ctx.storage.setAlarm(Date.now());
    return job;
  }

  /** Asks for what the archives' age calls for as of a day (src/archive.ts). */
  async age(today: string): Promise<void> {
    this.ctx.storage.kv.put(AGE, today);
    await this.ctx.storage.setAlarm(Date.now());
  }

  async jobs(): Promise<Job[]> {
    return this.sql.exec<{ job: string }>("SELECT job FROM jobs ORDER BY date DESC LIMIT ?", JOBS_KEPT).toArray().map(({ job }) => JSON.parse(job) as Job);
  }

  async alarm(): Promise<void> {
    for (let due: Job | null; (due = this.nextDue()); ) await this.run(due);
    const today = this.ctx.storage.kv.get<string>(AGE);
    if (today) {
      await this.ageAll(today);
      this.ctx.storage.kv.delete(AGE);
    }
    const next = this.sql.exec<{ due: number | null }>("SELECT min(due) AS due FROM jobs").one().due;
    if (next !== null) await this.ctx.storage.setAlarm(Math.max(next, Date.now()));
  }

  /** One that fails is a failed job, so an alert, and keeps none of the others from their turn; the next night tries it again. */
  private async ageAll(today: string): Promise<void> {
    for (const { date, ...archive } of await listArchives(this.env)) {
      const known = this.find(date);
      try {
        const done = await ageArchive(this.env, date, archive, today);
        if (done) console.log(`the archive of ${date} was ${done}`);
        if (done && known?.state === "failed") this.keep({ ...known, state: "done", error: null }, null);
      } catch (error) {
        console.error(`the archive of ${date} could not be brought to its next age`, error);
        this.keep({ ...(known ?? newJob(date)), state: "failed", error: (error as Error).message, endedAt: Date.now() }, null);
      }
    }
  }

  private async run(job: Job): Promise<void> {
    job.attempts++;
    try {
      await this.steps(job);
      Object.assign(job, { state: "done", error: null, endedAt: Date.now() });
      this.keep(job, null);
      this.env.ANALYTICS?.writeDataPoint({ blobs: ["archive_daily", job.date], doubles: [job.recordCount], indexes: ["1"] });
    } catch (error) {
      console.error(`archiving ${job.date} failed`, error);
      job.error = (error as Error).message;
      const again = job.attempts < TRIES_MOST;
      if (!again) Object.assign(job, { state: "failed", endedAt: Date.now() });
      this.keep(job, again ? Date.now() + RETRY_MS * job.attempts : null);
      this.env.ANALYTICS?.writeDataPoint({ blobs: ["archive_daily", job.date, job.error], doubles: [0], indexes: ["0"] });
    }
  }

  private async steps(job: Job): Promise<void> {
    let metadata: ArchiveMetadata | null = null;
    if (job.state !== "deleting") {
      // What was half written belongs to nobody. A file that is the day's by now is not half written.
      metadata = await readMetadata(this.env, job.date);
      if (job.key && metadata?.path !== job.key) await this.env.R2_BUCKET.delete(job.key);
      const rows = await detailCount(this.env, job.date);
      if (rows === 0) return void Object.assign(job, { recordCount: metadata?.recordCount ?? 0, size: metadata?.size ?? 0 });
      if (metadata) job.replaces.push(metadata.path);
      Object.assign(job, { state: "writing", key: await nextKey(this.env, job.date) });
      this.keep(job, Date.now());
      metadata = await writeDay(this.env, job.date, job.key!, rows);
      Object.assign(job, { state: "deleting", recordCount: metadata.recordCount, size: metadata.size });
      this.keep(job, Date.now());
    }
    metadata ??= await readMetadata(this.env, job.date);
    if (!metadata) throw new Error(`archive:metadata:${job.date} is gone`);
    job.deleted += await deleteDay(this.env, metadata);
    for (const path of job.replaces) if (path !== metadata.path) await this.env.R2_BUCKET.delete(path);
  }

  private nextDue(): Job | null {
    const [row] = this.sql.exec<{ job: string }>("SELECT job FROM jobs WHERE due <= ? ORDER BY date LIMIT 1", Date.now()).toArray();
    return row ? (JSON.parse(row.job) as Job) : null;
  }

  private find(date: string): Job | null {
    const [row] = this.sql.exec<{ job: string }>("SELECT job FROM jobs WHERE date = ?", date).toArray();
    return row ? (JSON.parse(row.job) as Job) : null;
  }

  private keep(job: Job, due: number | null): void {
    this.sql.exec("INSERT OR REPLACE INTO jobs (date, due, job) VALUES (?, ?, ?)", job.date, due, JSON.stringify(job));
    this.sql.exec("DELETE FROM jobs WHERE due IS NULL AND date NOT IN (SELECT date FROM jobs ORDER BY date DESC LIMIT ?)", JOBS_KEPT);
  }
}

export const archiver = (env: Env): DurableObjectStub<ArchiverDO> => env.ARCHIVER_DO.getByName("archiver");
