import { describe, expect, it } from 'vitest';
import { ed25519KeyPairFrom, nodeLogCrypto, sha256 } from '../../src/crypto/index.js';
import {
  formatNoteKey,
  formatSignedNote,
  fromBase64,
  LogFormatError,
  openCheckpoint,
  parseCheckpointText,
  parseNoteKey,
  parseSignedNote,
  signNote,
  verifyNote,
} from '../../src/index.js';
import { ORIGIN, TestLog, TestSigner } from './log-fixture.js';

/** Example of Go's package `golang.org/x/mod/sumdb/note`. */
const GO_KEY = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
const GO_PRIVATE_KEY = 'AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz';
const GO_TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const GO_NOTE = `${GO_TEXT}\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n`;

/** Checkpoint of a public Certificate Transparency log, with the cosignature of a public witness. */
const CT_NOTE = `arche2025h1.staging.ct.transparency.dev
1432088532
U7WM79jrzyhGZ5/GUBTpM7NzwdyfFx61t3RovgcC4Ro=

— arche2025h1.staging.ct.transparency.dev zTM8sQAAAZ5W0WdjBAMARjBEAiBjW5IQf9pvsYLfQFX6hoGREPMHbdQ3urbllzalApkptQIgIpwtEroeW2BXaHAI4kJXFbon5Ch9MNL5zRNZ55lvGt0=
— arche2025h1.staging.ct.transparency.dev ui8GwCF1+kWqZrxGdhj4aX3gcw7XUlXQQabg/27lefwhUkzbC3NygNI75MdhL1bfTW9g8Ei59RA23oHP7Ry1k3ZFWwQ=
— remora.n621.de 2net5wAAAABqEiEgPlfF3V06o0Y+fHM+J5J9s27wgxxcOVSpZ/2g/KSiXCg9DEZI+aVCIobWX9sXTynk5XeU/zZ0WBxtqB0DrAWfBw==
`;
const CT_KEY = 'arche2025h1.staging.ct.transparency.dev+ba2f06c0+AU0vHmlGCS/PdN8b2OaGmKprLI8HKM+dJ472xgFYh15f';
const WITNESS_KEY = 'remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2';

describe('signed notes', () => {
  it('agree with the example of Go, both ways', () => {
    const key = parseNoteKey(sha256, GO_KEY);
    expect(formatNoteKey(sha256, key)).toBe(GO_KEY);
    expect(verifyNote(nodeLogCrypto, parseSignedNote(GO_NOTE), key)).toEqual({ timeSeconds: 0 });
    const { sign } = ed25519KeyPairFrom(fromBase64(GO_PRIVATE_KEY).slice(1));
    expect(formatSignedNote({ text: GO_TEXT, signatures: [signNote(sha256, key, sign, GO_TEXT, 0)] })).toBe(GO_NOTE);
    expect(verifyNote(nodeLogCrypto, parseSignedNote(GO_NOTE.replace('problem is', 'problem was')), key)).toBeNull();
  });

  it('verify a public checkpoint by the keys of its log and of a witness', () => {
    const note = parseSignedNote(CT_NOTE);
    const witness = parseNoteKey(sha256, WITNESS_KEY);
    expect(parseCheckpointText(note.text).size).toBe(1_432_088_532);
    expect(verifyNote(nodeLogCrypto, note, parseNoteKey(sha256, CT_KEY))).toEqual({ timeSeconds: 0 });
    expect(verifyNote(nodeLogCrypto, note, witness)).toEqual({ timeSeconds: 0x6a122120 });
    const later = CT_NOTE.replace('2net5wAAAABqEiEg', '2net5wAAAABqEiEh');
    expect(verifyNote(nodeLogCrypto, parseSignedNote(later), witness)).toBeNull();
  });

  it('refuse malformed keys and notes', () => {
    for (const key of ['', GO_KEY.replace('c74f20a3', 'c74f20a4'), GO_KEY.replace('+AR', '+Ax'), `${GO_KEY}=`]) {
      expect(() => parseNoteKey(sha256, key), key).toThrow(LogFormatError);
    }
    for (const note of [
      '',
      'text\n',
      'text\n\n',
      GO_NOTE.slice(0, -1),
      GO_NOTE.replace('— ', '- '),
      GO_NOTE.replace('If', '\tIf'),
      '\n\n— a b\n',
    ]) {
      expect(() => parseSignedNote(note), JSON.stringify(note)).toThrow(LogFormatError);
    }
    for (const text of ['a\n1\n', 'a\n01\n', `a\n-1\n${'A'.repeat(43)}=\n`, `a\n1\n${'A'.repeat(43)}=\n\n`]) {
      expect(() => parseCheckpointText(text), text).toThrow(LogFormatError);
    }
  });
});

describe('checkpoints', () => {
  const now = 1_700_000_000_000;
  const log = new TestLog([Uint8Array.of(1), Uint8Array.of(2)]);
  const witness = new TestSigner('witness.example', 7, 'cosignature');

  it("state the log's time and the cosignatures of known witnesses", () => {
    const stranger = new TestSigner('stranger.example', 8, 'cosignature');
    const note = log.checkpoint(2, now, [witness, stranger], now - 5000);
    const opened = openCheckpoint(nodeLogCrypto, note, log.signer.key, [witness.key]);
    expect(opened).toMatchObject({
      origin: ORIGIN,
      size: 2,
      signedAt: now,
      cosignatures: [{ name: 'witness.example', signedAt: now - 5000 }],
    });
  });

  it('are refused with another key, origin or root', () => {
    const note = log.checkpoint(2, now);
    const open =
      (text: string, key = log.signer.key) =>
      () =>
        openCheckpoint(nodeLogCrypto, text, key, []);
    expect(open(note)).not.toThrow();
    expect(open(note, new TestSigner(ORIGIN, 9, 'ed25519').key)).toThrow('not signed by the log');
    expect(open(note, { ...log.signer.key, name: 'other.example' })).toThrow('another log');
    expect(open(note.replace('\n2\n', '\n3\n'))).toThrow('not signed by the log');
    const [text, plain] = [note.split('\n\n')[0], note.split('\n\n')[1]?.split('\n')[0]];
    expect(open(`${text}\n\n${plain}\n`)).toThrow("lacks the log's signed time");
  });
});
