// Loaded before a program: `clock-step.js?ms=-5000` sets its clock forward or back by so much at each SIGUSR2.

const stepMs = Number(new URL(import.meta.url).searchParams.get('ms'));
const realNow = Date.now;
let offsetMs = 0;

Date.now = () => realNow() + offsetMs;
process.on('SIGUSR2', () => (offsetMs += stepMs));

export {};
