import { once } from 'node:events';
import { nameTrace, problem, startPoll } from '../../http/answer.js';
import { answerStreamHead, EventStream, isStillAllowed } from '../../http/event-stream.js';
import { defineRoute } from '../../http/route.js';

const TOO_MANY = 'Too many consoles are connected to this api. Close some, or use another api.';

export const followLive = defineRoute({
  method: 'get',
  path: '/admin/v1/live',
  label: 'admin',
  operationId: 'followLive',
  summary: 'Streams active sales, running programs and current problems, one event per second.',
  access: 'viewer',
  endpoint: null,
  answers: {
    200: {
      description:
        'event `snapshot`; data: JSON with `atMs`, `sales` (at most 20, the busiest first), `moreSales`, `programs`,' +
        ' `conditions` (active alerts) and `missing` (data that could not be read). Figures cover all apis. The stream ends' +
        ' after some minutes, with `retry`.',
      type: 'text/event-stream',
    },
  },
  problems: ['overloaded'],
  async handle(call, services) {
    const { live, lifecycle, streamTimes } = services;
    const { req, res, counter } = call;
    nameTrace(call);
    if (req.method === 'HEAD') {
      counter.count('stream');
      answerStreamHead(res);
      return null;
    }
    if (live.isFull) return problem('overloaded', { detail: TOO_MANY });
    counter.count('stream');
    const poll = startPoll(res, lifecycle);
    const stream = new EventStream(req, res, streamTimes, isStillAllowed(call, services), () => poll.abort());
    const leave = live.follow((event) => stream.sendEncoded(event));
    if (!poll.signal.aborted) await once(poll.signal, 'abort');
    leave();
    stream.end();
    return null;
  },
});
