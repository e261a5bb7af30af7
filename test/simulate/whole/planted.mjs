// SPDX-License-Identifier: Apache-2.0
// test/simulate/whole/planted.mjs - plants bugs into whole nodes, one after the other, and tells after how many
// seeds each is found.
//
//     node planted.mjs --check                              every text that is to be replaced is there, once
//     node planted.mjs BUILD CC LINK [NAME] [--seeds N]     from rules.mk
//
// A plant replaces a text of one file of src/. What cannot be found in this world is listed too, with the reason.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';

const plants = [
  // Links: src/peer/link.h
  ['link.L3', 'link-torn', 'peer/link.c', '    if (more_size)\n        cn_stream_write(conn->stream, more, more_size);',
    '    if (more_size)\n        cn_stream_write(conn->stream, body, more_size < body_size ? more_size : body_size);'],
  // Pipes: src/peer/pipe.h
  ['pipe.T2', 'lost-is-unsent', 'peer/pipe_ask.c', 'asked->out.sent ? CN_PIPE_LOST : CN_PIPE_UNSENT', 'CN_PIPE_UNSENT'],
  ['pipe.T3', 'pieces-overtaken', 'peer/pipe_message.c', 'if (order && out->order == order)', 'if (!order && out->order == order)'],
  ['pipe.T4', 'piece-lost', 'peer/pipe_ask.c', 'return in->got < in->size || on_answer', 'return in->got < in->size / 2 || on_answer'],
  ['pipe.T10', 'old-session', 'peer/pipe_ask.c', '        cn_pipe_conn_end(conn);\n        peer->retry_at_ms = 0;',
    '        if (!conn->up)\n            cn_pipe_conn_end(conn);\n        conn->peer = NULL;\n        peer->retry_at_ms = 0;'],
  // The host: src/shard/host.h
  ['host.H1', 'two-steps', 'shard/host_step.c', 'while (!shard->running && !cn_list_empty(&shard->steps))', 'while (!cn_list_empty(&shard->steps))'],
  ['host.H2', 'gate-open-when-lost', 'shard/host_step.c',
    '    atomic_store(&shard->gate, false); /* H2 */\n    shard->ticket++;\n    if (shard->open)\n        disk->refuse(disk->data, shard->index, "another node has taken this shard over");',
    '    shard->ticket++;\n    (void)disk;'],
  ['host.H3', 'settled-when-appended', 'shard/host.c',
    '                appends[count++] =\n                    (struct cn_member_appends){index, disk->appended(disk->data, index)};',
    '{\n                appends[count++] =\n                    (struct cn_member_appends){index, disk->appended(disk->data, index)};\n                struct cn_err own;\n                (void)disk->settled(disk->data, index, appends[count - 1].lsn, &own);\n            }'],
  ['host.H4', 'other-record', 'shard/host.c', 'if (all[i].shard == shard && all[i].lsn == lsn) {', 'if (all[i].shard == shard && all[i].lsn != lsn) {'],
  ['host.H5', 'fed-too-much', 'shard/host.c',
    'part.to = disk->records(disk->data, message->shard, part.from + 1, message->to, max,',
    'part.to = disk->records(disk->data, message->shard, part.from + 1, message->to + 1, max,'],
  ['host.H8', 'close-fails-and-stays', 'shard/host_step.c', 'if (step->rc >= 0 || step->kind == CN_STEP_CLOSE)', 'if (step->rc >= 0)'],
  ['host.H10', 'seen-forgotten', 'shard/disk.c', '    rc = read_seen(disk, err);', '    rc = 0 * read_seen(disk, err);\n        disk->seen = (struct cn_engine_seen){0};'],
  ['host_copy.Q1', 'copy-end-early', 'shard/host_copy.c', 'shard->coming_number == part->number && shard->coming_offset == part->offset;',
    'true;\n    if (part->part == CN_COPY_PIECE && part->offset)\n        return;'],
  ['host.h ticket', 'ticket-of-later', 'shard/host.c', 'atomic_load(&host->confirmed) > ticket', 'atomic_load(&host->confirmed) + 1 > ticket'],
  // Shards that come and go: src/object/shard.h
  ['shard.S3', 'closed-before-lanes', 'object/shard.c', 'if (shard->awaited || (lets_go && shard->holds))', 'if (lets_go && shard->holds)'],
  ['shard.S4', 'holds-not-waited-for', 'object/shard.c', 'if (shard->awaited || (lets_go && shard->holds))', 'if (shard->awaited)'],
  ['shard.S5', 'objects-stay', 'object/lane_shard.c', '    end_objects(own);\n    cn_object_lane_fail_held', '    cn_object_lane_fail_held'],
  ['shard.S6', 'not-cut', 'object/lane_shard.c', '    cn_object_lane_fail_held(lane, own, &err);\n    cn_object_socket_let_go(own);', '    cn_object_socket_let_go(own);'],
  ['shard.S7', 'stop-does-not-wait', 'object/lane_shard.c', '    if (has_something_left(own))\n        return;\n    end_draining', '    end_draining'],
  ['sink.K4', 'leaves-undurable', 'object/gate.c', 'cn_lane_shard_may_leave(output->shard, output->lsn);', 'cn_lane_shard_may_leave(output->shard, 0);'],
  // Calls between nodes: src/remote/remote.h
  ['remote.O1', 'lost-is-sent-again', 'remote/outgoing.c',
    '        cn_remote_add(&lane->remote->numbers.lost, 1);\n        fail(sent, lost_faults(sent->call), CN_ECLOSED, LOST); /* O1 */', '        on_refused(sent, 0);'],
  ['remote.O2', 'held-for-ever', 'remote/outgoing.c', '    struct cn_call *call = release(held);\n    lane->remote->options.give_up(lane->remote->options.data, call);',
    '    (void)held;'],
  ['remote.O3', 'turn-ignored', 'remote/incoming.c', '    if (turn > turns[shard] && !lane->objects->stopping &&', '    if (!lane->objects->stopping &&'],
  ['remote.O4', 'elsewhere-overtaken', 'remote/outgoing.c', '    return found && waits;', '    return false;'],
  ['remote.O5', 'taken-by-anybody', 'remote/incoming.c', '        cn_lane_shard_is_here(&lane->objects->shards[shard]))\n        return true;', '        lane->objects->shards[shard].store)\n        return true;'],
];

/** Rules of the same headers that nothing here can break so that it is seen. */
const unseen = [
  ['link.L1', 'TLS is not in this world: test/unit/net/test_tls, hostile.test.mjs'],
  ['link.L2', 'a connection to another disk than was meant is refused by its first feed as well: test_link'],
  ['link.L5', 'a link that is never found silent is replaced when the other process is new: test_link'],
  ['link.L4', 'amounts: its bounds are megabytes: test_link'],
  ['link.L6', 'nobody sends malformed frames: test_link, fuzz_frame'],
  ['link.L7', 'who is called from where: test_link'],
  ['link.L8', 'messages for the operator: test_link'],
  ['pipe.T1', 'strangers and other releases: test_pipe, make upgrade-test'],
  ['pipe.T5', 'amounts: test_pipe'],
  ['pipe.T6', 'as link.L6: test_pipe, fuzz_frame'],
  ['pipe.T7', 'two minutes of silence are longer than a seed: test_pipe'],
  ['pipe.T8', 'a lane of the same life dials again only when its pipe has ended at its own end: test_pipe'],
  ['pipe.T9', 'who is called from where: test_pipe'],
  ['host lease', 'clients would have to ask an old owner within some 100 ms: make simulate-planted PLANTED=no-lease'],
  ['host.H7', 'failures of write and of settle: the store, and who opens it next, refuse too: test_host, test_replica'],
  ['host_copy.Q2', 'who receives refuses pieces of an old link too: test_host'],
  ['host.H6', 'amounts: test_host'],
  ['host.H9', 'what is slower is not wrong: test_host'],
  ['shard.S1', 'a number for ever: test_shard'],
  ['shard.S2', 'the gate of the host is shut before it: test_shard'],
  ['shard.S8', 'bodies of streams: test_shard, chat'],
  ['remote.O6', 'hostile nodes: test_question, fuzz_question'],
  ['remote.O7', 'a process ends with its lanes here: test_remote'],
  ['remote.O8', 'bodies of streams: test/cluster/server'],
];

function planted([, name, file, from, to]) {
  const text = readFileSync(`src/${file}`, 'utf8');
  const at = text.indexOf(from);
  if (at < 0 || text.indexOf(from, at + 1) >= 0)
    throw new Error(`test/simulate/whole/planted.mjs: ${name}: its text is not once in src/${file}`);
  return text.slice(0, at) + to + text.slice(at + from.length);
}

function sh(command) {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
  return { status, stdout, stderr };
}

/** After how many seeds it is found, and how; null: it is not. */
function run(plant, build, cc, link, seeds) {
  const [, name, file] = plant;
  const dir = `${build}/planted/whole/${name}`;
  mkdirSync(dir, { recursive: true });
  writeFileSync(`${dir}/planted.c`, planted(plant));
  const made = sh(`${cc} -Wno-error -w -c ${dir}/planted.c -o ${dir}/planted.o && ` +
    link.replace(`${build}/obj/${file.replace(/c$/, 'o')}`, `${dir}/planted.o`).replaceAll('OUTPUT', `${dir}/whole`));
  if (made.status) throw new Error(`${name}: ${made.stderr}`);
  const { status, stdout } = sh(`${dir}/whole --until ${seeds} 2>/dev/null`);
  return status ? null : stdout.trim().split('\n').pop();
}

const args = process.argv.slice(2);
if (args[0] === '--check') {
  plants.forEach(planted);
} else {
  const [build, cc, link, only] = args;
  const seeds = args.includes('--seeds') ? args[args.indexOf('--seeds') + 1] : 5000;
  const chosen = plants.filter((plant) => !only || only.startsWith('--') || plant[1] === only);
  let missed = 0;
  for (const plant of chosen) {
    const found = run(plant, build, cc, link, seeds);
    missed += found ? 0 : 1;
    const [, seed, how] = found ? /^(\d+) (.*)$/.exec(found) : [];
    console.log(`${plant[0].padEnd(13)} ${plant[1].padEnd(24)} ` +
      (found ? `found after ${seed.padStart(5)} seeds: ${how}` : `NOT FOUND in ${seeds} seeds`));
  }
  if (chosen.length > 1)
    for (const [rule, why] of unseen) console.log(`${rule.padEnd(13)} ${'is not seen here'.padEnd(24)} ${why}`);
  console.log(`${chosen.length} planted, ${chosen.length - missed} found`);
  process.exitCode = missed || !chosen.length ? 1 : 0;
}
