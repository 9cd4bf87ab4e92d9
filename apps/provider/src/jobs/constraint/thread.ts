/** Entry file of the thread that compiles client schemas. */
import { worker } from 'workerpool';
import { JobError } from '../job-error.js';
import type { CompilationResult } from './constraint-compiler.js';
import { type ConstraintRequest, compileConstraint, type FinishedOutput, satisfiesConstraint } from './output-constraint.js';

worker({
  compile: (constraint: ConstraintRequest): CompilationResult => {
    try {
      return { constraint: compileConstraint(constraint) };
    } catch (error) {
      if (!(error instanceof JobError)) throw error;
      // The failure is returned as data: a thrown error would lose its class between threads.
      return { failure: error.failure };
    }
  },
  fits: (constraint: ConstraintRequest, output: FinishedOutput): boolean => satisfiesConstraint(constraint, output),
});
