/** Texts about plain and end-to-end mode. The texts must not claim more than docs/security-model.md. */

/** Statement of the guarantee of end-to-end mode and its limit. */
export const END_TO_END_PROMISE =
  "End-to-end encrypted between your program and the machine that answers. Our servers relay it and cannot read it. The machine's owner could, with a changed program; we prove which Mac and its protections, not which program.";

interface Observer {
  readonly who: string;
  /** Visible to the observer in plain mode. */
  readonly plain: string;
  /** Visible to the observer in end-to-end mode. */
  readonly endToEnd: string;
}

/** Observers, and the parts of requests and responses that each can see. */
export const OBSERVERS: readonly Observer[] = [
  {
    who: 'The coordinator',
    plain: 'Everything, in memory',
    endToEnd: 'Account, address, model, endpoint, token limit, sizes, timing, tokens, machine',
  },
  {
    who: 'The machine that answers (owner with root rights, changed agent)',
    plain: 'Everything',
    endToEnd: 'Everything',
  },
  {
    who: 'The other machines that the request is sealed to',
    plain: 'Not applicable',
    endToEnd: 'Everything, if the coordinator sends it to them',
  },
  {
    who: 'An operator that enrols machines of its own',
    plain: 'Has no need to: the coordinator sees everything',
    endToEnd: 'Its share of the traffic. Only a list of allowed enclave keys prevents this.',
  },
  {
    who: 'A thief of the sealing key of a machine',
    plain: 'The recorded traffic of the hour in which the key was valid',
    endToEnd: 'The same',
  },
];
