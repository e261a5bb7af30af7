DIFFERENTIAL ?=
.PHONY: differential
differential: setup workerd ## random calls of the APIs here and on workerd, by cause; DIFFERENTIAL="--family web --seed 7 --programs 2000"
	@$(MAKE) $(JOBS) $(B)/cairn
	@node test/differential/run.mjs $(DIFFERENTIAL)
