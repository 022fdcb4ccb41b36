// Loaded before a program: `clock-step.mjs?ms=-5000` moves its clock by this time at each SIGUSR2, and with `&at=start`
// before its first line.

const params = new URL(import.meta.url).searchParams;
const stepMs = Number(params.get('ms'));
const realNow = Date.now;
let offsetMs = params.get('at') === 'start' ? stepMs : 0;

Date.now = () => realNow() + offsetMs;
// The client of the broker dates its messages with `new Date()`.
globalThis.Date = new Proxy(Date, {
  construct: (date, args, target) => Reflect.construct(date, args.length === 0 ? [date.now()] : args, target),
});
process.on('SIGUSR2', () => (offsetMs += stepMs));
