// luxon: time zones across a change of clocks, differences, formats of other languages.
import { DateTime, Duration, Interval } from "luxon";

export default {
  fetch() {
    const before = DateTime.fromISO("2026-03-29T01:30", { zone: "Europe/Berlin" });
    const after = before.plus({ hours: 1 });
    return Response.json({
      offsets: [before.offset, after.offset],
      after: after.toISO(),
      tokyo: DateTime.fromISO("2026-11-15T05:00:00Z").setZone("Asia/Tokyo").toFormat("yyyy-MM-dd HH:mm"),
      french: DateTime.fromISO("2026-07-14").setLocale("fr").toLocaleString(DateTime.DATE_FULL),
      days: Interval.fromDateTimes(DateTime.fromISO("2026-02-01"), DateTime.fromISO("2026-03-01")).length("days"),
      duration: Duration.fromISO("PT36H").shiftTo("days", "hours").toObject(),
      week: DateTime.fromISO("2027-01-01").toISOWeekDate(),
      invalid: DateTime.fromISO("2026-02-30").isValid,
    });
  },
};
