/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/fake_bundler.h - a program in the place of cairn-bundler.
 *
 * It is told jobs as tools/bundler is and answers at once, as its mode says:
 *
 *     build       writes what a bundle is (its script is the text of the entry), and says so
 *     say         the same, with a warning
 *     fail        says that the project does not build
 *     die         ends without an answer
 *     die-once    does so once, then builds
 *     half-once   ends in the middle of an answer once, then builds
 *     garbage     answers what is no JSON
 *     forget      says that it has built, and has not
 *     hang        never answers
 *
 * A test may ask for how many jobs it had and how often it was started. */
#ifndef CN_TEST_FAKE_BUNDLER_H
#define CN_TEST_FAKE_BUNDLER_H

/* Puts it into a fresh folder and into CAIRN_BUNDLER; its mode is "build". */
void fake_bundler_install(void);
void fake_bundler_mode(const char *mode);
unsigned fake_bundler_jobs(void);   /* so far */
unsigned fake_bundler_starts(void); /* so far */

#endif
